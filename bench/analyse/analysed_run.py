"""A saved run with what its records say together."""

from functools import cached_property

from bench.analyse.choices import CoreChoice, choices
from bench.analyse.rows import grouped
from bench.analyse.summary import Summary
from bench.store.saved_run import SavedRun


class AnalysedRun(SavedRun):
    """A saved run with what its records say together, each part computed once, when it is needed."""

    @cached_property
    def summary(self) -> Summary:
        """The rows of all points, made of the journal's records, of which one point is in memory at a time."""
        by_point = grouped(self.contents.entries, lambda entry: entry.case.point)
        return Summary(self.baseline or "", (map(self.contents.load, own) for own in by_point.values()))

    @cached_property
    def choices(self) -> list[CoreChoice]:
        """The core to use at each point at which sdpa was measured."""
        return choices(self.summary)
