"""A saved run with what its records say together."""

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

import pandas as pd

from bench.analyse.rows import grouped
from bench.analyse.summary import Summary
from bench.plan.errors import WrongRequest
from bench.plan.sweep import Sweep
from bench.store import table
from bench.store.record import Record
from bench.store.saved_run import SavedRun


class AnalysedRun(SavedRun):
    """A saved run with what its records say together, each part computed once, when it is needed.

    The results of a folder are those of its journal; without one, those of its results.csv.
    """

    @cached_property
    def whole(self) -> pd.DataFrame:
        """The results as in a saved run, from the journal of a run folder; raises WrongRequest if there are none."""
        if not (self.is_folder and self.contents.path.exists()):
            return super().whole
        if self.planned is None or not self.contents.records:
            raise WrongRequest(f"{self.contents.path} holds no rows, or no plan of them")
        return table.visible(self.results)

    @cached_property
    def results(self) -> pd.DataFrame:
        """The results of the journal as results.csv holds them: texts quote other programs."""
        self.summary.pool()
        return table.of_rows(self.summary.all_rows())

    @cached_property
    def summary(self) -> Summary:
        """The rows of all points, made of the journal's records."""
        sweep = self.planned
        if sweep is None:
            return Summary("")
        by_point = grouped(self.contents.records, lambda record: record.case.point)
        return Summary(sweep.baseline, (in_order(own, sweep) for own in by_point.values()))


def in_order(records: Iterable[Record], sweep: Sweep) -> list[Record]:
    """Return records in the order of the sweep's implementations; those of other implementations come last."""
    order = {name: index for index, name in enumerate(sweep.measured)}
    return sorted(records, key=lambda record: order.get(record.case.implementation, len(order)))


def load(path: str | Path) -> pd.DataFrame:
    """Return the results of a run folder or of a results file, one row per case of an implementation.

    Raises WrongRequest if it has none.
    """
    return AnalysedRun(path).table
