"""What all outputs of a comparison share: the headline, rows, worst first, their texts, and the stamp."""

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pandas as pd

from bench.analyse.comparison import WELL
from bench.analyse.rows import point_of
from bench.analyse.standing import FASTEST, NAMED
from bench.plan import verdicts
from bench.plan.again import Again
from bench.plan.verdicts import CHANGED, JUDGED, OPEN
from bench.show import blocks
from bench.show.intervals import UNBOUNDED
from bench.show.rows import Row, plain, reason
from bench.show.text import MOST, counted, differences, first, more, parts, varying
from bench.stats.best import GOOD
from bench.stats.limits import Limits
from bench.store import units

STAMP = "NOT COMPARABLE"
"""In every line of a forced comparison, so that no line can be quoted without it."""

ONE_SIDED = (verdicts.MISSING, verdicts.NEW)
"""Verdicts of cases that are in one of the two runs alone."""

EVENTS = (*CHANGED, verdicts.NEWLY_FAILING, verdicts.FIXED)
"""Verdicts of rows that a person should see."""

TONES = {
    verdicts.SLOWER: blocks.BAD,
    verdicts.NEWLY_FAILING: blocks.BAD,
    verdicts.MISSING: blocks.WARNING,
    OPEN: blocks.WARNING,
    verdicts.FIXED: blocks.GOOD,
    verdicts.FASTER: blocks.GOOD,
    verdicts.AS_FAST: blocks.GOOD,
    verdicts.BASELINE: blocks.QUIET,
}
"""The tones of verdicts that stand out; every verdict is also said in words."""

NEARLY_ALL = 0.9
"""The share of rows for which a bound of changes is said: a few rows are noisy everywhere."""

MOST_CHANGE = 100.0
"""A change of 10,000 % or more is no bound: two processes that differ wildly exclude nothing."""

CLAIM = 10
"""The number of processes that is advised if a side has one."""

MOST_NAMED = 3
"""The number of changed rows that are named, the worst first."""


@dataclass(frozen=True)
class Report:
    """A comparison with the notes about it.

    `rebased_to` is the implementation that replaced the baseline. `unlike` holds the conditions that differ if the
    comparison was forced, `doubts` a line for each run in which identical code differs too much, `unlike_runs` lines
    about settings that differ, and `notes` lines about both runs. With `shows_all` every row is listed.
    `again` measures single rows as NEW did.
    """

    comparison: pd.DataFrame
    limits: Limits = field(default_factory=Limits)
    rebased_to: str = ""
    unlike: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    unlike_runs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    shows_all: bool = False
    again: Again = field(default_factory=Again)

    @cached_property
    def rows(self) -> list[Row]:
        """The rows by verdict, worst first, and within a verdict by their change, slowest first."""
        rank = list(verdicts.VERDICTS).index
        rows = plain(self.comparison)
        return sorted(rows, key=lambda row: (rank(row["verdict"]), 1 if row["change"] is None else row["change"]))

    @cached_property
    def varying(self) -> set[str]:
        """The columns in which the points of the rows differ."""
        return varying(map(point_of, self.rows))

    @property
    def shared(self) -> str:
        """In words the values that the points of all rows share."""
        return " · ".join(parts(point_of(self.rows[0]), without=self.varying))

    @cached_property
    def judged(self) -> list[Row]:
        """The rows that have a verdict of statistics and an interval."""
        return [row for row in self.rows if row["verdict"] in JUDGED and row["change_low"] is not None]

    @cached_property
    def few_shared(self) -> bool:
        """Whether most cases are in one of the two runs alone."""
        return 2 * sum(row["verdict"] in ONE_SIDED for row in self.rows) > len(self.rows)

    def point(self, row: Row) -> str:
        """Return in words the values in which a row's point differs from others."""
        return differences(point_of(row), self.varying)

    @property
    def baseline(self) -> str:
        """The implementation that all ratios refer to, empty if no row is of it."""
        rows = self.comparison
        names = rows.loc[rows["verdict"] == verdicts.BASELINE, "implementation"].unique()
        return self.rebased_to or ", ".join(names)

    @property
    def mark(self) -> str:
        """What every line begins with, empty if nothing was forced."""
        return STAMP if self.unlike else ""

    @property
    def stamp(self) -> str:
        """The stamp with its reasons, empty if nothing was forced."""
        return f"{STAMP}: {'; '.join(self.unlike)}" if self.unlike else ""


def counts(rows: Sequence[Row]) -> str:
    """Return how many rows have each verdict, worst first: `2 slower, 1 missing, 40 equivalent`."""
    number = Counter(row["verdict"] for row in rows)
    return ", ".join(f"{number[verdict]} {verdict}" for verdict in verdicts.VERDICTS if number[verdict])


def change(row: Row) -> str:
    """Return the change with the half-width of its interval, `-5.0% ±0.23%`, empty if there is nothing to judge."""
    if row["base_status"] != "ok" or row["new_status"] != "ok" or row["verdict"] == verdicts.BASELINE:
        return ""
    if row["change"] is None:
        return "no ratio"
    return f"{signed_percent(row['change'])} {units.half_width(row['change_low'], row['change_high']) or '±?'}"


def signed_percent(ratio: float) -> str:
    """Return a ratio as a change, `-5.0%`."""
    return f"{round(100 * (ratio - 1), 1) + 0:+.1f}%"  # + 0 makes -0.0 plain


def excluded(rows: Sequence[Row]) -> tuple[str, int]:
    """Return a bound that nearly all of these judged rows show no change above, in whole per cent, and their number.

    The bound is empty if it is so high that it says nothing.
    """
    ends = _ends(rows)
    bound = ends[math.ceil(NEARLY_ALL * len(ends)) - 1]
    if bound >= MOST_CHANGE:
        return "", 0
    bound = math.ceil(100 * bound) / 100
    return f"{bound:.0%}", sum(end <= bound for end in ends)


def most(rows: Sequence[Row]) -> str:
    """Return the largest change that one of these judged rows doesn't exclude, in whole per cent; empty without one."""
    bound = max(_ends(rows), default=math.inf)
    return "" if bound >= MOST_CHANGE else f"{math.ceil(100 * bound)}%"


def _ends(rows: Sequence[Row]) -> list[float]:
    """Return the largest change that each row doesn't exclude, as a share, the least first."""
    return sorted(max(row["change_high"], 1 / row["change_low"] if row["change_low"] else math.inf) - 1 for row in rows)


@dataclass(frozen=True)
class Implementation:
    """What a comparison says of one implementation: its judged rows, their verdicts, and their changes."""

    name: str
    rows: int
    verdicts: str
    median: str
    excluded: str


def implementations(report: Report) -> list[Implementation]:
    """Return what the judged rows of each implementation say together, in the order of the table."""
    lines = []
    for name in dict.fromkeys(report.comparison["implementation"]):
        if rows := [row for row in report.judged if row["implementation"] == name]:
            bound, number = excluded(rows)
            middle = math.exp(statistics.median(math.log(row["change"]) for row in rows))
            few = "" if number in (0, len(rows)) else f" in {number}, {most(rows) or UNBOUNDED} in all"
            lines.append(Implementation(name, len(rows), counts(rows), signed_percent(middle), f"{bound}{few}"))
    return lines


def side(row: Row, name: str) -> str:
    """Return the latency of a side, or its status if it isn't ok; empty if the side has no such row."""
    status = row[f"{name}_status"]
    return units.seconds(row[f"{name}_latency_s"]) if status == "ok" else status or ""


def failure(row: Row) -> str:
    """Return how a row fails in NEW, on one line."""
    return f"{row['new_status']}: {reason({'detail': row['new_detail']}) or 'no detail'}"


def explanations(report: Report) -> list[str]:
    """Return what the columns and verdicts of a report mean, line by line."""
    limits, rows = report.limits, report.rows
    margin, bound, level = (units.percent(share, trim=True) for share in (limits.margin, limits.bound, limits.level))
    lines = [
        _reference(rows, report.baseline),
        f"slower, faster: by more than {margin}, wrong about any of the rows with a chance of {level}; "
        f"equivalent: within {bound}",
        "base, new: raw times, shown and never judged",
    ]
    if any(row["verdict"] == OPEN for row in rows):
        lines.append("open: neither a change nor its absence is shown; no change above: what 95 % intervals exclude")
    return lines


def _reference(rows: Sequence[Row], baseline: str) -> str:
    """Return what a change is relative to."""
    to = f"to {baseline}" if baseline else "to the baseline"
    by_level = sum(bool(row["by_level"]) for row in rows)
    if not by_level:
        return f"change: how much faster a row became from BASE to NEW, relative {to}; minus is slower"
    others = sum(row["change_low"] is not None for row in rows) - by_level
    beside = f", or in {counted(others, 'row')} {to}" if others else ""
    return (
        "change: how much faster a row became from BASE to NEW, relative to the other rows of its point"
        f"{beside}; minus is slower. If all rows of a point became slower alike, the change is 0, and only raw times "
        "show it"
    )


def headline(report: Report) -> list[str]:
    """Return the first lines of a comparison: in which runs identical code differs, how they differ, what changed."""
    return [*report.doubts, *_unlike(report), "; ".join(_findings(report))]


def _unlike(report: Report) -> Iterator[str]:
    rows = report.rows
    if report.few_shared:
        base, new = (sum(row["verdict"] == verdict for row in rows) for verdict in ONE_SIDED)
        yield (
            f"BASE and NEW are different runs: they share {len(rows) - base - new} of {len(rows)} cases; "
            f"{base} are in BASE alone and {new} in NEW alone"
        )
    yield from report.unlike_runs


def _findings(report: Report) -> Iterator[str]:
    """Yield what changed in what to use and in rows, and the largest change that the others exclude."""
    yield from _use(report, is_changed=True)
    for verdict in (verdicts.SLOWER, verdicts.NEWLY_FAILING, verdicts.FASTER):
        if affected := [row for row in report.rows if row["verdict"] == verdict]:
            yield _named(affected, f"{'is' if len(affected) == 1 else 'are'} {verdict}", report)
    yield from _use(report, is_changed=False)
    judged = report.judged
    if not judged:
        yield from _nothing_judged(report)
        return
    left = [row for row in judged if row["verdict"] not in CHANGED]
    if not left:
        return
    if not any(row["verdict"] == OPEN for row in left):
        others = "every other judged row" if len(left) < len(judged) else "every judged row"
        yield f"{others} is equivalent, within {units.percent(report.limits.bound, trim=True)}"
        return
    yield from _excluded(left, "other " if len(left) < len(judged) else "")


def _excluded(left: Sequence[Row], other: str) -> Iterator[str]:
    """Yield which changes the rows exclude that both runs measured well, and how many others there are."""
    well = [row for row in left if is_well_measured(row)]
    vague, told = len(left) - len(well) if well else 0, well or left
    measured = f" that both runs measured in {WELL} processes or more" if vague else ""
    rows = f"{counted(len(told), f'{other}row')}{measured}"
    bound, number = excluded(told)
    others = f", nor above {most(told)} in the others" if bound and number < len(told) and most(told) else ""
    rest = f"no change above {bound} in {number} of {rows}{others}"
    yield rest if bound else f"{rows}: the scatter excludes no change"
    if vague:
        say = "row was measured in fewer and says" if vague == 1 else "rows were measured in fewer and say"
        end = most([row for row in left if not is_well_measured(row)])
        yield f"{vague} other {say} little{f': no change above {end}' if end else ''}"


def is_well_measured(row: Row) -> bool:
    """Return whether both runs measured a row in WELL processes or more."""
    return min(row["base_processes"] or 0, row["new_processes"] or 0) >= WELL


def _use(report: Report, *, is_changed: bool) -> Iterator[str]:
    """Yield at which points BASE's choice is no longer one in NEW.

    If there are none: at which NEW names another one, and the most that BASE's choice costs in NEW.
    """
    named = {point_of(row): row["implementation"] for row in report.rows if row["new_standing"] in (FASTEST, NAMED)}
    chosen = [row for row in report.rows if row["base_standing"] in (FASTEST, NAMED) and point_of(row) in named]
    lost = [row for row in chosen if row["new_status"] != "ok" or (row["new_slowdown_low"] or 1.0) > GOOD]
    others = [row for row in chosen if row["implementation"] != named[point_of(row)]]
    points, highs = counted(len(chosen), "point"), [row["new_slowdown_high"] for row in chosen]
    moved = [f"{report.point(row)} {row['implementation']} → {named[point_of(row)]}".strip() for row in lost or others]
    if lost and is_changed:
        yield f"what to use changed at {len(lost)} of {points}: {first(moved, MOST_NAMED)}"
    elif chosen and not (lost or is_changed) and (moved or None not in highs):
        most = math.inf if None in highs else max(highs)
        cost = f"costs at most {more(most)}" if most < MOST else "has no bound of its cost"
        cost = f"BASE's choice {'is still the fastest' if most == 1 else cost} in NEW"
        if moved:
            yield f"NEW names another one at {len(others)} of {points}: {first(moved, MOST_NAMED)}; {cost}"
        else:
            yield f"what to use is the same: at {points} {cost}"


def _nothing_judged(report: Report) -> Iterator[str]:
    """Yield why no row was judged."""
    sides = [row[f"{side}_processes"] for row in report.rows for side in ("base", "new")]
    if any(row["change"] is not None for row in report.rows) and 1 in sides:
        yield f"1 process on a side shows no change: measure both runs with --processes {CLAIM}"
    else:
        yield "no row was judged"


def _named(affected: Sequence[Row], what: str, report: Report) -> str:
    """Return the number of affected rows, and the worst by name."""
    worst = sorted(affected, key=lambda row: -abs(math.log(row["change"])) if row["change"] else 0.0)
    names = []
    for row in worst:
        by = signed_percent(row["change"]) if row["verdict"] in CHANGED else ""
        names.append(" ".join(filter(None, (row["implementation"], report.point(row), by))))
    return f"{counted(len(affected), 'row')} {what}: {first(names, MOST_NAMED)}"
