"""The ratios between points that differ in one column alone and were measured in the same rounds."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.analyse.analysed_run import AnalysedRun
from bench.analyse.flags import is_biased
from bench.analyse.rows import Row, grouped
from bench.analyse.summary import values_of
from bench.plan.across import groups
from bench.plan.case import CONTROL, Case, Point
from bench.stats.contrasts import Prior, Values, contrasts, prior
from bench.stats.estimates import UNKNOWN, Interval, interval
from bench.store.record import Record


@dataclass(frozen=True)
class Setting:
    """A row at a point, and its implementation's `base` at the first point of the group.

    `ratio` is how many times as fast it is as the base, unknown for the base itself.
    """

    row: Row
    point: Point
    base: Row
    first: Point
    ratio: Interval = UNKNOWN

    @property
    def is_disturbed(self) -> bool:
        """Whether other processes may have biased the ratio."""
        return any(is_biased({**row, "speedup": self.ratio.value}) for row in (self.row, self.base))


def settings(run: AnalysedRun) -> list[Setting]:
    """Return the rows of each group by implementation, then by value; none of a run that isn't across a column.

    Groups with a point that the run hasn't reached are left out.
    """
    if run.planned is None or not run.planned.across:
        return []
    reached = {*run.summary}
    wanted = groups(run.planned.points, run.planned.across)
    records = grouped((each for each in run.records if each.status == "ok"), lambda each: each.case)
    found = [(group, _values(records, group)) for group in wanted if reached.issuperset(group)]
    pooled = prior([values for _, values in found])
    told = [each for group, values in found for each in _settings(run, group, values, pooled)]
    return told if any(math.isfinite(each.ratio.value) for each in told) else []


def _values(records: Mapping[Case, Sequence[Record]], group: Sequence[Point]) -> Values:
    cases = [case for case in records if case.point in group and case.implementation != CONTROL]
    return values_of({f"{group.index(case.point)} {case.implementation}": records[case] for case in cases})


def _settings(run: AnalysedRun, group: Sequence[Point], values: Values, pooled: Prior) -> Iterator[Setting]:
    of = contrasts(values, pooled) if values.names else None
    rows = {(point, row["implementation"]): row for point in group for row in run.summary.rows(point)}
    for name in dict.fromkeys(name for _, name in rows if name != CONTROL):
        for number, point in enumerate(group):
            if (row := rows.get((point, name))) is None:
                continue
            ratio, pair = UNKNOWN, (f"{number} {name}", f"0 {name}")
            if number and of and {*pair} <= {*of.names}:
                ratio = interval(of.speedup(*pair)).exp()
            yield Setting(row, point, rows.get((group[0], name), row), group[0], ratio)
