"""What all outputs of a comparison share: rows, worst first, their texts, and the stamp of a forced comparison."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

import pandas as pd

from bench.analyse.comparison.verdicts import VERDICTS
from bench.analyse.scaling.series import point_of
from bench.plan.case import POINT_COLUMNS
from bench.show.point_text import differences, parts
from bench.show.rows import Row, plain, reason
from bench.stats.limits import INCONCLUSIVE, Limits
from bench.stats.sample_size import MOST_PROCESSES
from bench.store import units

STAMP = "NOT COMPARABLE"
"""In every line of a forced comparison, so that no line can be quoted without it."""

UNKNOWN, TOO_MANY = "?", f">{MOST_PROCESSES}"
"""The number of further processes that would decide a row, if it is unknown or too large."""

ONE_SIDED = ("missing", "new")
"""Verdicts of cases that are in one of the two runs alone."""

RERUN = ", except in rows that a rerun measured alternately"


@dataclass(frozen=True)
class Report:
    """A comparison with the notes about it.

    `rebased_to` is the implementation that replaced the baseline. `unlike` holds the conditions that differ if the
    comparison was forced, `unproven` a line for each run that its control makes unproven, `unlike_runs` lines about
    settings that differ, and `notes` lines about both runs.
    """

    comparison: pd.DataFrame
    limits: Limits = field(default_factory=Limits)
    rebased_to: str = ""
    unlike: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()
    unlike_runs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def rows(self) -> list[Row]:
        """The rows by verdict, worst first, and within a verdict by their change, slowest first."""
        rank = list(VERDICTS).index
        rows = plain(self.comparison)
        return sorted(rows, key=lambda row: (rank(row["verdict"]), 1 if row["change"] is None else row["change"]))

    @cached_property
    def varying(self) -> set[str]:
        """The columns in which the points of the rows differ."""
        points = self.comparison[list(POINT_COLUMNS)]
        return {name for name in POINT_COLUMNS if points[name].nunique(dropna=False) > 1}

    @property
    def shared(self) -> str:
        """In words the values that the points of all rows share."""
        return " · ".join(parts(point_of(self.rows[0]), without=self.varying))

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
        names = rows.loc[rows["verdict"] == "baseline", "implementation"].unique()
        return self.rebased_to or ", ".join(names)

    @property
    def stamp(self) -> str:
        """The stamp with its reasons, empty if nothing was forced."""
        return f"{STAMP}: {'; '.join(self.unlike)}" if self.unlike else ""


def counts(rows: list[Row]) -> str:
    """Return how many rows have each verdict, worst first: `2 slower, 1 missing, 40 equivalent`."""
    number = Counter(row["verdict"] for row in rows)
    return ", ".join(f"{number[verdict]} {verdict}" for verdict in VERDICTS if number[verdict])


def change(row: Row) -> str:
    """Return the change with the half-width of its interval, `-5.0% ±0.23%`, empty if there is nothing to judge."""
    if row["base_status"] != "ok" or row["new_status"] != "ok" or row["verdict"] == "baseline":
        return ""
    if row["change"] is None:
        return "no ratio"
    half = units.half_width(row["change_low"], row["change_high"])
    return f"{signed_percent(row['change'])} {'±?' if half is None else f'±{units.percent(half)}'}"


def signed_percent(ratio: float) -> str:
    """Return a ratio as a change, `-5.0%`."""
    return f"{round(100 * (ratio - 1), 1) + 0:+.1f}%"  # + 0 makes -0.0 plain


def more(row: Row) -> str:
    """Return how many further processes would decide an inconclusive row: `+14`, `>50`, or `?` if nothing tells."""
    if row["verdict"] != INCONCLUSIVE or row["change"] is None or row.get("rerun"):
        return ""
    if row["further_processes"] is not None:
        return f"+{row['further_processes']}"
    return UNKNOWN if row["change_low"] is None else TOO_MANY


def more_and_how(row: Row) -> str:
    """Return how many further processes would decide an inconclusive row, and how: `+14 → slower`."""
    return f"{more(row)} → {row['further_verdict']}" if row["further_verdict"] else more(row)


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
    over = f" over {report.baseline}" if report.baseline else ""
    margin, bound, level = (units.percent(share, trim=True) for share in (limits.margin, limits.bound, limits.level))
    lines = [
        f"change: NEW's speed-up{over} by BASE's, each from its own run; minus is slower",
        f"slower, faster: by more than {margin}, wrong about any of the rows with a chance of {level}; "
        f"equivalent: within {bound}",
        f"base, new: raw times, shown and never judged{RERUN if any(row.get('rerun') for row in rows) else ''}",
    ]
    if any(row["verdict"] == INCONCLUSIVE for row in rows):
        lines.append("inconclusive: neither a change nor its absence is shown")
    if any(map(more, rows)):
        lines.append(
            "more: about how many further processes on each side decide it, if change and scatter stay as they are"
        )
    if any(more(row) == TOO_MANY for row in rows):
        lines.append(f"{TOO_MANY}: more processes are not worth their time; a quieter machine or --rerun is")
    if any(more(row) == UNKNOWN for row in rows):
        lines.append(f"{UNKNOWN}: fewer than 2 processes on a side, or none that differ, say nothing of the scatter")
    return lines
