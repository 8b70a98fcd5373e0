"""The history of several runs: speed-ups from run to run, what changed, and what began to fail."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from bench.analyse.comparison import compare
from bench.analyse.selection import went_wrong
from bench.plan.case import Case
from bench.plan.errors import NotComparable, WrongRequest
from bench.plan.verdicts import CHANGED
from bench.stats.estimates import Interval
from bench.store.table import baseline_of, cases


@dataclass(frozen=True)
class PastRun:
    """A run in a history: a name, its versions in words, when it began, and its table."""

    name: str
    version: str
    started_at: str
    table: pd.DataFrame


@dataclass(frozen=True)
class PastSpeed:
    """The speed-up of a case in a run; `step` is `faster` or `slower` if it is shown to have changed since the last."""

    speedup: Interval
    step: str


@dataclass(frozen=True)
class History:
    """Runs, the oldest first, and the entry of each case in each run that measured it, by the number of the run.

    `failures` has the status of each case in each run in which it is not ok, without those that can't be measured.
    """

    runs: tuple[PastRun, ...]
    entries: dict[Case, dict[int, PastSpeed]]
    baseline: str
    failures: dict[Case, dict[int, str]]

    @property
    def cases(self) -> list[Case]:
        """All cases, each once."""
        return [*dict.fromkeys([*self.entries, *self.failures])]

    @property
    def lost(self) -> list[tuple[Case, int, str]]:
        """The cases that fail in a run and were ok in the one before, with the run's number and the status."""
        return [
            (case, number, status)
            for case, of in self.failures.items()
            for number, status in of.items()
            if number - 1 in self.entries.get(case, {})
        ]


def run_of(name: str, table: pd.DataFrame) -> PastRun:
    """Return a run of a history."""
    versions = [f"torch {each}" for each in table["torch_version"].dropna().unique()]
    commits = [str(each) for each in table["commit"].dropna().unique()]
    started = sorted(table["started_at"].dropna())
    return PastRun(name, ", ".join([*versions, *commits]), str(started[0]) if started else "", table)


def history(runs: Sequence[PastRun]) -> History:
    """Return the history of some runs, ordered by their beginning.

    Raises WrongRequest if their baselines differ, because then their speed-ups say different things.
    """
    ordered = tuple(sorted(runs, key=lambda run: run.started_at))
    baselines = {run.name: baseline_of(run.table) for run in ordered}
    if len({*baselines.values()}) > 1 or None in baselines.values():
        each = ", ".join(f"{name}: {baseline or 'not known'}" for name, baseline in baselines.items())
        raise WrongRequest(f"the runs of a history must have one baseline, got {each}")
    entries, failures = dict[Case, dict[int, PastSpeed]](), dict[Case, dict[int, str]]()
    for number, run in enumerate(ordered):
        bad = run.table[went_wrong(run.table)]
        for case, status in zip(cases(bad), bad["status"], strict=True):
            failures.setdefault(case, {})[number] = str(status)
        steps = _steps(ordered[number - 1].table, run.table) if number else {}
        for case, speedup in _speedups(run.table):
            entries.setdefault(case, {})[number] = PastSpeed(speedup, steps.get(case, ""))
    return History(ordered, entries, str(next(iter(baselines.values()))), failures)


def _speedups(table: pd.DataFrame) -> Iterator[tuple[Case, Interval]]:
    rows = table[(table["status"] == "ok") & table["speedup"].notna() & (table["implementation"] != table["baseline"])]
    values = rows[["speedup", "speedup_low", "speedup_high"]].astype(float).to_numpy().tolist()
    for case, ends in zip(cases(rows), values, strict=True):
        yield case, Interval(*ends)


def _steps(before: pd.DataFrame, after: pd.DataFrame) -> dict[Case, str]:
    """Return the verdict of each case that is shown to have changed between two runs; none if they share no case."""
    try:
        compared = compare(before, after)
    except NotComparable:
        return {}
    changed = compared[compared["verdict"].isin(list(CHANGED))]
    return dict(zip(cases(changed), map(str, changed["verdict"]), strict=True))
