"""Why cases have no time, each reason once: in a sentence, as a list, as blocks, and as what fails a point."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from bench.analyse.rows import grouped, point_of
from bench.plan.case import CONTROL, Point
from bench.plan.sweep import Sweep
from bench.show.answer import At, points_of
from bench.show.blocks import BAD, HEAD, QUIET, WARNING, Block, Column, Lines, Table
from bench.show.rows import UNTRIED, Row, plain, reason
from bench.show.text import MOST_LISTED, counted, listed, names, share_of
from impls.catalogue import name_of

NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?")

HARMLESS = ("ok", "oom", *UNTRIED)
"""Statuses of a baseline that has not failed: too little memory for it is a result."""


@dataclass(frozen=True)
class Reason:
    """Implementations that share a status and a detail at the same points."""

    status: str
    detail: str
    names: tuple[str, ...]
    points: tuple[Point, ...]

    @property
    def brief(self) -> str:
        """The implementations and the status: `eager, sdpa oom`."""
        return f"{', '.join(self.names)} {self.status}"

    @property
    def why(self) -> str:
        """The status and the detail: `oom: not enough memory`."""
        return ": ".join(filter(None, (self.status, self.detail)))

    def __str__(self) -> str:
        """Return the whole reason, with the number of points: `eager oom: not enough memory (at 3 points)`."""
        where = f" (at {len(self.points)} points)" if len(self.points) > 1 else ""
        return f"{', '.join(self.names)} {self.why}{where}"


def reasons(rows: Iterable[Row]) -> list[Reason]:
    """Return the reasons of some rows, in their order."""
    ends = grouped(rows, lambda row: (str(row["status"]), reason(row), str(row["implementation"])))
    alike = grouped(ends, lambda end: (*end[:2], tuple(map(point_of, ends[end]))))
    return [
        Reason(status, detail, tuple(name for *_, name in same), points)
        for (status, detail, points), same in alike.items()
    ]


def sentence(points: Sequence[At]) -> str:
    """Return in a sentence which cases have no time."""
    rows, total = [row for at in points for row in at.rows], sum(at.cases for at in points)
    lost = [row for row in rows if row["status"] != "ok"]
    cases, waits = counted(total, "case"), sum(at.waits for at in points)
    if not (lost or waits):
        return f"All {cases} were measured."
    parts = []
    for status in sorted({row["status"]: None for row in lost}, key=UNTRIED.__contains__):
        numbers = Counter(row["implementation"] for row in lost if row["status"] == status)
        where = ", ".join(f"{name} at {counted(number, 'point')}" for name, number in numbers.items())
        parts.append(f"{numbers.total()} {status} ({where})")
    if waiting := [at for at in points if at.waits]:
        parts.append(f"{waits:,} not tried yet ({counted(len(waiting), 'point')})")
    names = max(at.cases for at in points)
    of = f" ({len(points):,} points × {names} implementations)" if total == len(points) * names > names > 1 else ""
    return f"{len(lost) + waits:,} of {cases}{of} have no time: {'; '.join(parts)}."


def told(of: Sequence[Reason], labels: Mapping[Point, str]) -> list[str]:
    """Return each reason once, with whose it is and at which of the points with these names.

    Reasons that differ in their numbers alone are one, with the numbers of the first.
    """
    return [_line(alike, labels) for alike in grouped(of, _without_numbers).values()]


def _without_numbers(of: Reason) -> tuple[str, str]:
    return of.status, NUMBER.sub("#", of.detail)


def _line(alike: Sequence[Reason], labels: Mapping[Point, str]) -> str:
    by_names = grouped(alike, lambda each: each.names)
    whose = [
        f"{', '.join(names)}{_at([p for each in of for p in each.points], labels)}" for names, of in by_names.items()
    ]
    others = " (elsewhere with other numbers)" if len({each.detail for each in alike}) > 1 else ""
    return f"{'; '.join(whose)}: {alike[0].why}{others}"


def _at(points: Sequence[Point], labels: Mapping[Point, str]) -> str:
    """Return where something happened: the points if they are few, nothing if there are no others."""
    if len(labels) == 1:
        return ""
    is_all = len(points) == len(labels) > MOST_LISTED
    return f" at {f'all {len(points)} points' if is_all else listed([labels[point] for point in points])}"


def failing(
    rows: Sequence[Row], fail_on: Sequence[str] | None, *, lacks_device: bool, baseline: str | None = None
) -> list[Reason]:
    """Return why a point fails, a reason for each status and detail; none if it doesn't fail.

    With `fail_on` the point fails if an implementation has one of these statuses. With None it fails if the device is
    missing, if a user's own implementation isn't ok, if the baseline has failed, or if no implementation is ok and not
    all are unsupported.
    """
    bad = [row for row in rows if row["status"] != "ok"]
    if fail_on is not None:
        return reasons(row for row in bad if row["status"] in fail_on)
    nothing = len(bad) == len(rows) and any(row["status"] != "unsupported" for row in bad)
    return reasons(
        row
        for row in bad
        if nothing or lacks_device or name_of(row["implementation"]).is_own or has_failed(row, baseline)
    )


def has_failed(row: Row, baseline: str | None) -> bool:
    """Return whether a row is that of the baseline, and something went wrong there."""
    return row["implementation"] == baseline and row["status"] not in HARMLESS


def of_baseline(points: Collection[Sequence[Row]], baseline: str | None) -> list[str]:
    """Return in a sentence at how many points, of which these are the rows, the baseline has failed, and why.

    A baseline that has not failed and yet has no time at any point, as where it is unsupported, is told too if others
    have one.
    """
    rows = [row for of_point in points for row in of_point]
    lost = [row for row in rows if row["implementation"] == baseline and row["status"] != "ok"]
    tried = sum(map(bool, points))
    is_absent = len(lost) == tried and any(row["status"] == "ok" for row in rows)
    why = reasons(row for row in lost if has_failed(row, baseline)) or reasons(lost if is_absent else ())
    if not why:
        return []
    number = sum(len(each.points) for each in why)
    where = f" at {share_of(number, len(points))} points" if len(points) > 1 else ""
    others = f", and {counted(len(why) - 1, 'other reason')}" if why[1:] else ""
    there = " there" if number < tried else ""
    ended = "failed" if has_failed({"implementation": baseline, "status": why[0].status}, baseline) else "has no time"
    return [f"The baseline {baseline} {ended}{where}, so there are no speed-ups{there}: {why[0].why}{others}."]


def blocks(table: pd.DataFrame, planned: Sweep | None = None) -> list[Block]:
    """Return the failed cases, those never tried, and those with a doubt; each reason once with its points.

    The control is listed, and is no case. With the plan of the run all its cases are counted.
    """
    everything, points = plain(table), points_of(table, planned)
    labels = names({**{at.point: None for at in points}, **{point_of(row): None for row in everything}})
    titled = {
        "failed": [row for row in everything if row["status"] not in ("ok", *UNTRIED)],
        "not tried": [row for row in everything if row["status"] in UNTRIED],
        "measured, with a doubt": [row for row in everything if row["status"] == "ok" and reason(row)],
    }
    columns = (
        Column("", lambda each: each.status),
        Column("", lambda each: ", ".join(each.names), folds=True),
        Column("", lambda each: "; ".join(filter(None, (each.detail, _at(each.points, labels).strip()))), folds=True),
    )
    waiting = sum(at.waits for at in points)
    if not (waiting or any(titled.values())):
        return [Lines([f"all {counted(sum(at.cases for at in points), 'case')} were measured"])]
    return [
        *([Lines([sentence(points)], WARNING)] if waiting else []),
        *(
            block
            for title, rows in titled.items()
            if rows
            for block in (
                Lines([f"{title}: {_number(rows)}"], HEAD),
                Table(columns, reasons(rows), indent=2, tone=_tone),
            )
        ),
    ]


def _number(rows: Sequence[Row]) -> str:
    """Return how many cases some rows are, and at how many points they are the control."""
    controls = sum(row["implementation"] == CONTROL for row in rows)
    parts = [counted(len(rows) - controls, "case")] * (len(rows) > controls)
    return ", and ".join([*parts, *[f"the control at {counted(controls, 'point')}"] * bool(controls)])


def of_point(rows: Sequence[Row], cases: int, width: int) -> Table:
    """Return why these rows of a point hold no time, a row for each reason.

    `cases` is the number of rows of the point, `width` that of the column of implementations above.
    """

    def whose(each: Reason) -> str:
        return (f"all {cases}" if 1 < len(each.names) == cases else ", ".join(each.names)).ljust(width)

    return Table(
        [Column("", whose, folds=True), Column("", lambda each: each.why, folds=True)],
        reasons(rows),
        indent=2,
        tone=_tone,
    )


def _tone(of: Reason) -> str:
    """Return a loud tone only if something went wrong."""
    return QUIET if of.status in UNTRIED else BAD
