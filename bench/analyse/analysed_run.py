"""A saved run: the contents of its folder or results file, and the summary of its records."""

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from bench.analyse.rows import grouped
from bench.analyse.summary import Summary
from bench.plan.errors import WrongRequest
from bench.plan.sweep import Effort, Sweep
from bench.store import environment, journal, plan, profile, table
from bench.store.environment import Environment
from bench.store.profile import Profile
from bench.store.record import Record

PLOTS = "plots"
PAGE = "report.html"


class AnalysedRun:
    """A saved run, by the path of its folder or results file; each part is read or computed once, when needed.

    `known` has parts by name that this process has made and need not read.
    If it `is_folder`, files can be added. A results file that isn't called results.csv `is_alone`: files beside it
    belong to another run. `folder` has the results; `plots`, `page` and `traces` are in it, and may not exist.
    Every part raises WrongRequest if its file can't be read or is broken.
    """

    def __init__(self, path: str | Path, **known: Any) -> None:
        vars(self).update(known)
        self.path = Path(path)
        self.is_folder = self.path.is_dir()
        self.is_alone = not self.is_folder and self.path.name != table.RESULTS
        self.folder = self.path if self.is_folder else self.path.parent
        self.plots, self.page, self.traces = self.folder / PLOTS, self.folder / PAGE, self.folder / profile.TRACES

    def __str__(self) -> str:
        return str(self.path)

    @cached_property
    def whole(self) -> pd.DataFrame:
        """The results with the control's rows and with control characters escaped; raises WrongRequest without any.

        A folder's results come from its journal, or else from its results.csv.
        """
        if not (self.is_folder and self.contents.path.exists()):
            return table.visible(table.load(self.path))
        if self.planned is None or not self.contents.records:
            raise WrongRequest(f"{self.contents.path} has no rows or no plan")
        return table.visible(self.results)

    @cached_property
    def table(self) -> pd.DataFrame:
        """The results, one row per case of an implementation; raises WrongRequest if there are none."""
        return table.without_control(self.whole)

    @property
    def baseline(self) -> str | None:
        """The implementation that speed-ups refer to; None unless the table names exactly one."""
        return table.baseline_of(self.table)

    @cached_property
    def environment(self) -> Environment | None:
        """The environment of the run, None if it isn't known."""
        return None if self.is_alone else environment.load(self.folder)

    @cached_property
    def planned(self) -> Sweep | None:
        """The plan of the run, None if it isn't known."""
        return None if self.is_alone else plan.of(self.contents)

    @property
    def effort(self) -> Effort | None:
        """The effort that was asked for, None if it isn't known."""
        return self.planned.effort if self.planned else None

    @property
    def records(self) -> list[Record]:
        """The journal's valid records in the order of their measurement; none without a journal."""
        return self.contents.records

    @property
    def notices(self) -> list[str]:
        """A line for each fault of the journal."""
        return self.contents.notices()

    @cached_property
    def profiles(self) -> list[Profile]:
        """The profiles of the run's cases."""
        return [] if self.is_alone else profile.load(self.folder)

    @cached_property
    def contents(self) -> journal.Contents:
        """The contents of the journal; empty without one."""
        return journal.Contents(self.path) if self.is_alone else journal.scan(self.folder)

    @cached_property
    def results(self) -> pd.DataFrame:
        """The results of the journal as in results.csv; their texts quote other programs."""
        self.summary.pool()
        return table.of_rows(self.summary.all_rows())

    @cached_property
    def summary(self) -> Summary:
        """The summary of all points' records in the journal."""
        sweep = self.planned
        if sweep is None:
            return Summary("")
        by_point = grouped(self.contents.records, lambda record: record.case.point)
        return Summary(sweep.baseline, (in_order(own, sweep) for own in by_point.values()))


def in_order(records: Iterable[Record], sweep: Sweep) -> list[Record]:
    """Return records in the order of the sweep's implementations; other implementations come last."""
    order = {name: index for index, name in enumerate(sweep.measured)}
    return sorted(records, key=lambda record: order.get(record.case.implementation, len(order)))


def load(path: str | Path) -> pd.DataFrame:
    """Return the results of a run folder or of a results file, one row per case of an implementation.

    Raises WrongRequest without results.
    """
    return AnalysedRun(path).table
