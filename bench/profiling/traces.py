"""Profile chosen cases of a run, each in a separate worker, and write the profiles into the run's `traces`."""

import dataclasses
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from bench.analyse.profile import operator_table
from bench.analyse.rows import grouped, plain, point_of
from bench.analyse.standing import by_rank
from bench.engine.pool import scratch
from bench.engine.replicate import now
from bench.engine.variables import environment
from bench.engine.worker import Died, Worker, started
from bench.machine import facts
from bench.plan.case import CASE_COLUMNS, Case
from bench.plan.errors import WrongRequest, refusing, unknown
from bench.sampling.requests import Profiled, Trace
from bench.store.profile import TRACES, Profile, file_name, save
from bench.store.record import Origin
from bench.store.table import cases
from impls.catalogue import GRAPH

MODULE = f"{__package__}.worker"

CASE_S = 300.0
"""The most seconds of one case, including its compilation."""


def trace_of(case: Case, run: Path) -> Path:
    """Return the file of the trace of a case."""
    return run / TRACES / f"{file_name(case)}.json.gz"


def write(cases: Sequence[Case], run: Path) -> Iterator[Profile | str]:
    """Profile the cases one by one; yield each profile when its files are written, or the reason why there is none.

    Raises WrongRequest if the run's folder `traces` can't be written.
    """
    folder = run / TRACES
    with refusing(f"the trace folder {folder} can't be written"):
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    with scratch() as own:
        for case in cases:
            reply = _ask(case, trace_of(case, run), own)
            yield reply.reason or _saved(case, reply, run)


def _saved(case: Case, reply: Profiled, run: Path) -> Profile:
    here = facts.observe(reply.facts, {}, {})
    origin = dataclasses.asdict(Origin.of(here, case.point.device, now()))
    profile = Profile.from_json({**case.columns(), **origin, **reply.profile})
    save(profile, run)
    operator_table(profile).to_csv(run / TRACES / f"{file_name(case)}.operators.csv", index=False)
    return profile


def _ask(case: Case, path: Path, own: Path) -> Profiled:
    at = case.point
    try:
        variables = environment(at.allocator, at.threads, own / "compiled", kind=at.kind)
        with Worker(started(MODULE, variables)) as worker:
            worker.ready()
            return worker.ask(Trace(at, case.implementation, str(path.absolute())), CASE_S)
    except Died as death:
        return Profiled(death.detail)


def chosen(table: pd.DataFrame, selectors: Sequence[str], baseline: str) -> list[Case]:
    """Return the cases that match the selectors; without selectors, the fastest and the baseline of each point.

    The cases of a point are followed by its graph, which has the stages, unless that failed. A graph can be
    selected even if the run didn't measure it. Raises WrongRequest for a wrong selector, and if no case is ok.
    """
    measured = table[table["status"] == "ok"]
    if measured.empty:
        raise WrongRequest("the run has no case that is ok")
    failed = {*cases(table[table["status"] != "ok"])}
    staged = measured.assign(implementation=GRAPH)
    candidates = pd.concat([measured, staged[[case not in failed for case in cases(staged)]]])
    selected = [case for selector in selectors for case in agreeing(candidates, selector)]
    by_point = grouped(selected or _fastest_and_baselines(measured, baseline), lambda case: case.point)
    with_graphs = [case for point, of in by_point.items() for case in (*of, Case(point, GRAPH))]
    return [case for case in dict.fromkeys(with_graphs) if case not in failed]


def agreeing(table: pd.DataFrame, selector: str) -> list[Case]:
    """Return the cases that match all conditions of a selector, `column=value,column=value…`.

    Raises WrongRequest for an unknown column, and if none matches.
    """
    for condition in selector.split(","):
        column, equals, value = condition.partition("=")
        if not equals:
            raise WrongRequest(f"--case {selector} must be column=value,column=value…, got {condition!r}")
        if column not in CASE_COLUMNS:
            raise unknown("column", column, CASE_COLUMNS)
        matching = table[table[column].astype("string") == value]
        if matching.empty:
            values = ", ".join(table[column].astype("string").dropna().unique()) or "nothing"
            raise WrongRequest(
                f"--case {selector}: no case that is ok matches {condition}; expected {column} = {values}"
            )
        table = matching
    return list(dict.fromkeys(cases(table)))


def _fastest_and_baselines(measured: pd.DataFrame, baseline: str) -> list[Case]:
    selected: list[Case] = []
    for point, rows in grouped(plain(measured), point_of).items():
        names = [row["implementation"] for row in by_rank(rows)]
        selected += [Case(point, name) for name in names if name in (names[0], baseline)]
    return selected
