"""Profiles of chosen cases of a run, each made by a separate worker and written into the run's folder of traces."""

import dataclasses
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
from bench.plan.layers import LAYERS
from bench.sampling.requests import Profiled, Trace
from bench.store.profile import TRACES, Profile, file_name, save
from bench.store.record import Origin
from bench.store.table import cases
from impls.catalogue import GRAPH

MODULE = f"{__package__}.worker"

CASE_S = 300.0
"""The longest that one case may take, its compilation included."""

STEPWISE = "stepwise"
"""The implementation whose profile has the stages of a layer with a name.

It, or the graph of a module, can be chosen at every point, even if the run didn't measure it.
"""


@dataclass(frozen=True)
class Traced:
    """A case with the file of its trace and its profile; if that is None, `reason` says why."""

    case: Case
    trace: Path
    profile: Profile | None
    reason: str = ""


def write(cases: Sequence[Case], run: Path) -> Iterator[Traced]:
    """Profile the cases one after the other; yield each when its trace, profile and table of operators are written.

    Raises WrongRequest if the run's folder `traces` can't be written.
    """
    folder = run / TRACES
    with refusing(f"the trace folder {folder} can't be written"):
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    with scratch() as own:
        for case in cases:
            yield _traced(case, folder / f"{file_name(case)}.json.gz", own)


def _traced(case: Case, path: Path, own: Path) -> Traced:
    reply = _ask(case, path, own)
    if reply.reason:
        return Traced(case, path, None, reply.reason)
    here = facts.observe(reply.facts, {}, {})
    origin = dataclasses.asdict(Origin.of(here, case.point.device, now()))
    profile = Profile.from_json({**case.columns(), **origin, **reply.profile})
    save(profile, path.parents[1])
    operator_table(profile).to_csv(path.with_name(f"{file_name(case)}.operators.csv"), index=False)
    return Traced(case, path, profile)


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
    """Return the cases that match the selectors, or the fastest and the baseline of each point.

    The last case of each point is followed by the one with its stages, unless that failed there. A selector is
    `column=value,column=value…`; a case must match all conditions of one selector.
    Raises WrongRequest for an unknown column, and if no case with the status ok matches.
    """
    measured = table[table["status"] == "ok"]
    if measured.empty:
        raise WrongRequest("the run holds no case that is ok")
    staged = measured.assign(implementation=measured["layer"].map(_with_stages))
    failed = {*cases(table[table["status"] != "ok"])}
    staged = staged[[case not in failed for case in cases(staged)]]
    candidates = pd.concat([measured, staged]).drop_duplicates([*CASE_COLUMNS])
    agreeing = dict.fromkeys(case for selector in selectors for case in _agreeing(candidates, selector))
    selected = [*agreeing] if selectors else _fastest_and_baselines(measured, baseline)
    last, possible = {case.point: case for case in selected}, {*cases(staged)}
    extended: list[Case] = []
    for case in selected:
        stages = Case(case.point, _with_stages(case.point.layer))
        extended += [case, stages] if case is last[case.point] and stages in possible else [case]
    return list(dict.fromkeys(extended))


def _with_stages(layer: str) -> str:
    """Return the implementation whose profile has the stages of a layer."""
    return STEPWISE if layer in LAYERS else GRAPH


def _agreeing(table: pd.DataFrame, selector: str) -> list[Case]:
    for condition in selector.split(","):
        column, equals, value = condition.partition("=")
        if not equals:
            raise WrongRequest(f"--case {selector}: must be column=value,column=value…, got {condition!r}")
        if column not in CASE_COLUMNS:
            raise unknown("column", column, CASE_COLUMNS)
        agreeing = table[table[column].astype("string") == value]
        if agreeing.empty:
            values = ", ".join(table[column].astype("string").dropna().unique()) or "nothing"
            raise WrongRequest(
                f"--case {selector}: no case of the run that is ok agrees with {condition}; "
                f"the others have {column} = {values}"
            )
        table = agreeing
    return cases(table)


def _fastest_and_baselines(measured: pd.DataFrame, baseline: str) -> list[Case]:
    selected: list[Case] = []
    for point, rows in grouped(plain(measured), point_of).items():
        names = [row["implementation"] for row in by_rank(rows)]
        selected += [Case(point, name) for name in names if name in (names[0], baseline)]
    return selected
