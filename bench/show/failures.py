"""The reasons why cases have no time, each once, and the rules by which a point fails."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench.analyse.rows import UNTRIED, Row, grouped, point_of
from bench.plan.case import Point
from bench.show.answer import At
from bench.show.blocks import BAD, QUIET, Column, Lines, Table
from bench.show.rows import reason
from bench.show.text import counted, cut, share_of
from impls.catalogue import name_of

NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?")

LONGEST_REASON, BRIEF = 500, 160
"""A reason is cut to LONGEST_REASON characters, at the end of a run to BRIEF; results.csv has all of it."""

HARMLESS = ("ok", "oom", *UNTRIED)
"""Statuses with which a baseline hasn't failed; running out of memory is a result."""


@dataclass(frozen=True)
class Reason:
    """A status and a detail that implementations share, with their points."""

    status: str
    detail: str
    names: tuple[str, ...]
    points: tuple[Point, ...]

    @property
    def brief(self) -> str:
        """The implementations and the status: `eager, sdpa oom`."""
        return f"{', '.join(self.names)} {self.status}"


def reasons(rows: Iterable[Row]) -> list[Reason]:
    """Return the reasons of some rows in order.

    If an implementation's reasons differ only in their numbers, the first represents all, and says so.
    """
    ends = grouped(rows, lambda row: (str(row["status"]), NUMBER.sub("#", reason(row)), str(row["implementation"])))
    alike = grouped(ends.values(), lambda own: (own[0]["status"], _detail(own), tuple(map(point_of, own))))
    return [
        Reason(str(status), detail, tuple(str(own[0]["implementation"]) for own in same), points)
        for (status, detail, points), same in alike.items()
    ]


def _detail(own: Sequence[Row]) -> str:
    return f"{'at the first point: ' * (len({*map(reason, own)}) > 1)}{reason(own[0])}"


def table(points: Sequence[At], longest: int = LONGEST_REASON) -> list[Lines | Table]:
    """Return a table of cases without a time or with a remark: status, who, where, why; empty if all are ok.

    Failures come first, then remarks, then cases that were never tried, then cases that the run has not reached.
    """
    rows = [row for at in points for row in at.rows]
    order = {"ok": 1, **dict.fromkeys(UNTRIED, 2)}
    odd = sorted(
        (row for row in rows if reason(row) or row["status"] != "ok"), key=lambda row: order.get(row["status"], 0)
    )
    labels = {at.point: at.label for at in points}
    told = reasons(odd)
    if waiting := [at for at in points if at.waits]:
        told.append(Reason("not tried", "the run has not reached it", ("all",), tuple(at.point for at in waiting)))
    if not told:
        return []
    lost = sum(row["status"] != "ok" for row in rows) + sum(at.waits for at in points)
    cases = counted(sum(at.cases for at in points), "case")
    columns = (
        Column("status", lambda each: each.status),
        Column("who", lambda each: ", ".join(each.names), folds=True),
        Column("where", lambda each: _where(each.points, labels), folds=True),
        Column("why", lambda each: cut(each.detail, longest), folds=True, is_code=True),
    )
    head = f"Not timed: {lost:,} of {cases}." if lost else f"All {cases} were measured."
    return [Lines([head]), Table(columns, told, tone=lambda each: QUIET if each.status in HARMLESS else BAD)]


def _where(points: Sequence[Point], labels: Mapping[Point, str]) -> str:
    """Return the point's label for one of several points, else the number of points."""
    if len(labels) == 1:
        return ""
    return labels[points[0]] if len(points) == 1 else f"{share_of(len(points), len(labels))} points"


def failing(
    rows: Sequence[Row], fail_on: Sequence[str] | None, *, lacks_device: bool, baseline: str | None = None
) -> list[Reason]:
    """Return why a point fails, a reason for each status and detail; empty if it doesn't fail.

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
    """Return whether a row is a failure of the baseline."""
    return row["implementation"] == baseline and row["status"] not in HARMLESS


def of_baseline(points: Sequence[At], baseline: str | None) -> list[str]:
    """Return a sentence on the points without a time of the baseline, and so without ratios, and why.

    It is empty if the baseline has a time at some points and didn't fail at the others, or if nothing has a time.
    """
    rows = [row for at in points for row in at.rows]
    lost = [row for row in rows if row["implementation"] == baseline and row["status"] != "ok"]
    tried = sum(bool(at.rows) for at in points)
    is_absent = len(lost) == tried and any(row["status"] == "ok" for row in rows)
    told = [row for row in lost if has_failed(row, baseline)] or (lost if is_absent else [])
    if not told:
        return []
    where = f" at {share_of(len(told), len(points))} points" if len(points) > 1 else ""
    why = ": ".join(filter(None, (told[0]["status"], cut(reason(told[0]), LONGEST_REASON))))
    return [f"The baseline {baseline} has no time{where}, so there are no ratios there: {why}."]
