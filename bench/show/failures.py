"""Why cases ended as they did, each reason once, and for which of them `pytest bench` ends with status 1."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bench.plan.case import Case, Point
from bench.plan.names import is_own
from bench.show.rows import UNTRIED, Row, plain, reason
from bench.show.terminal.console import style_of_status
from bench.show.text import counted, differences, varying

NAMES_WIDTH = 32
"""The width of the column of implementations, unless a name is longer."""


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
    at: dict[tuple[str, str, str], list[Point]] = {}
    for row in rows:
        key = str(row["status"]), reason(row), str(row["implementation"])
        at.setdefault(key, []).append(Case.from_columns(row).point)
    names: dict[tuple[str, str, tuple[Point, ...]], list[str]] = {}
    for (status, detail, name), points in at.items():
        names.setdefault((status, detail, tuple(points)), []).append(name)
    return [Reason(status, detail, tuple(each), points) for (status, detail, points), each in names.items()]


def few(of: list[Reason], most: int) -> list[str]:
    """Return the first reasons in words, and how many others there are."""
    others = [f"and {counted([len(of) - most], 'other reason', 'other reasons')}"] if len(of) > most else []
    return [*map(str, of[:most]), *others]


def failing(rows: Sequence[Row], fail_on: Sequence[str] | None, *, lacks_device: bool) -> list[Reason]:
    """Return why a point fails, a reason for each status and detail; none if it doesn't fail.

    With `fail_on` the point fails if an implementation has one of these statuses. With None it fails if the device is
    missing, if a user's own implementation isn't ok, or if no implementation is ok and not all are unsupported.
    """
    bad = [row for row in rows if row["status"] != "ok"]
    if fail_on is not None:
        return reasons(row for row in bad if row["status"] in fail_on)
    nothing = len(bad) == len(rows) and any(row["status"] != "unsupported" for row in bad)
    return reasons(row for row in bad if nothing or lacks_device or is_own(row["implementation"]))


def blocks(table: pd.DataFrame) -> RenderableType:
    """Return the failed cases, those never tried, and those with a doubt; each kind once with its points."""
    everything = plain(table)
    rows = [row for row in everything if row["status"] != "ok" or reason(row)]
    if not rows:
        return Text(f"all {len(table)} cases were measured")
    wrong = [row for row in rows if row["status"] not in ("ok", *UNTRIED)]
    untried = [row for row in rows if row["status"] in UNTRIED]
    doubtful = [row for row in rows if row["status"] == "ok"]
    different = varying(Case.from_columns(row).point for row in everything)
    titled = {"failed": wrong, "not tried": untried, "measured, with a doubt": doubtful}
    return Group(*(block for title, of in titled.items() if of for block in _block(title, of, different)))


def of_point(rows: Sequence[Row], cases: int, width: int | None, gap: int) -> RenderableType:
    """Return why these rows of a point hold no time, one line for each reason.

    `cases` is the number of rows of the point, `width` that of the column of implementations.
    """
    grid = Table.grid(padding=(0, gap))
    grid.add_column(min_width=width, no_wrap=True)
    grid.add_column(overflow="fold")
    for each in reasons(rows):
        who = f"all {cases}" if 1 < len(each.names) == cases else ", ".join(each.names)
        grid.add_row(Text(who), Text(each.why), style=style_of_status(each.status))
    return Padding(grid, (0, 0, 0, gap), expand=False)


def _block(title: str, rows: Sequence[Row], different: set[str]) -> Iterator[RenderableType]:
    yield Text(f"{title}: {counted([len(rows)], 'case', 'cases')}", "bold")
    grid = Table.grid(padding=(0, 2), pad_edge=True)
    grid.add_column(no_wrap=True)
    grid.add_column(max_width=max(NAMES_WIDTH, *(len(row["implementation"]) for row in rows)))
    grid.add_column(overflow="fold")
    for each in reasons(rows):
        why = Text("; ".join(filter(None, (each.detail, _where(each.points, different)))))
        grid.add_row(each.status, Text(", ".join(each.names)), why, style=style_of_status(each.status))
    yield grid


def _where(points: Sequence[Point], different: set[str]) -> str:
    first = differences(points[0], different)
    if len(points) == 1:
        return f"at {first}" if first else "at the only point"
    return f"at {len(points)} points, the first {first}"
