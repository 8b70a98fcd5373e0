"""What every output of a comparison says: its rows worst first, their words, and the stamp of what was forced."""

from dataclasses import dataclass, field

import pandas as pd

from bench.analyse.comparison.verdicts import VERDICTS
from bench.plan.case import POINT_COLUMNS, Case, Point
from bench.show import units
from bench.show.rows import Row, plain, reason
from bench.show.words import differences, parts, varying
from bench.stats.limits import INCONCLUSIVE, Limits
from bench.stats.sample_size import MOST_PROCESSES

STAMP = "NOT COMPARABLE"
"""Stands in every line of a comparison that was forced, so that none can be quoted without it."""


UNKNOWN, TOO_MANY = "?", f">{MOST_PROCESSES}"
"""How many further processes would decide a row, if nothing tells or if they are too many."""

ONE_SIDED = ("missing", "new")
"""Verdicts of cases that are in one of the two runs alone."""

RERUN = ", but where a rerun took them alternately"


@dataclass(frozen=True)
class Report:
    """A comparison with all that is said about it.

    `rebased_to` is the implementation that replaces the runs' own baseline, if one does, `unlike` how the conditions
    differ that were compared all the same, `unlike_runs` lines about how the runs were asked for differently, and
    `notes` are lines about both runs.
    """

    comparison: pd.DataFrame
    limits: Limits = field(default_factory=Limits)
    rebased_to: str = ""
    unlike: tuple[str, ...] = ()
    unlike_runs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> list[Row]:
        """The rows, worst first."""
        return worst_first(plain(self.comparison))

    @property
    def baseline(self) -> str:
        """The implementation that all ratios refer to, empty if no row is of it."""
        rows = self.comparison
        names = rows.loc[rows["verdict"] == "baseline", "implementation"].unique()
        return self.rebased_to or ", ".join(names)

    @property
    def stamp(self) -> str:
        """The stamp with its reasons, empty where nothing was forced."""
        return f"{STAMP}: {'; '.join(self.unlike)}" if self.unlike else ""


def worst_first(rows: list[Row]) -> list[Row]:
    """Return the rows by verdict, worst first, and within a verdict by their change, slowest first."""
    rank = list(VERDICTS).index
    return sorted(rows, key=lambda row: (rank(row["verdict"]), 1 if row["change"] is None else row["change"]))


def counts(rows: list[Row]) -> str:
    """Return how many rows have each verdict, worst first: `2 slower, 1 missing, 40 equivalent`."""
    number = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in VERDICTS}
    return ", ".join(f"{count} {verdict}" for verdict, count in number.items() if count)


def shares_few(rows: list[Row]) -> bool:
    """Return whether most cases are in one of the two runs alone."""
    return 2 * sum(row["verdict"] in ONE_SIDED for row in rows) > len(rows)


def point(row: Row) -> Point:
    """Return the point of a row."""
    return Case.from_columns(row).point


def moving(rows: list[Row]) -> set[str]:
    """Return the columns in which the points of the rows differ."""
    return varying(map(point, rows))


def shared(rows: list[Row]) -> str:
    """Return what the points of all rows have in common."""
    columns = moving(rows)
    return " · ".join(parts(point(rows[0]), [name for name in POINT_COLUMNS if name not in columns]))


def where(row: Row, columns: set[str]) -> str:
    """Return a row's point by the columns in which points differ."""
    return differences(point(row), columns)


def change(row: Row) -> str:
    """Return the change with the half-width of its interval, `-5.0% ±0.23%`, empty where there is nothing to judge."""
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
    """Return the latency of a side, or the status in its place, empty where the side has no such row."""
    status = row[f"{name}_status"]
    return units.seconds(row[f"{name}_latency_s"]) if status == "ok" else status or ""


def failure(row: Row) -> str:
    """Return how a row fails in NEW, on one line."""
    said = reason({"detail": row["new_detail"]})
    return f"{row['new_status']}: {said or 'no detail'}"


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
            "more: about so many more processes on each side decide it, if change and scatter stay as they are"
        )
    if any(more(row) == TOO_MANY for row in rows):
        lines.append(f"{TOO_MANY}: more processes are not worth their time; a quieter machine or --rerun is")
    if any(more(row) == UNKNOWN for row in rows):
        lines.append(f"{UNKNOWN}: fewer than 2 processes on a side, or none that differ, say nothing of the scatter")
    return lines
