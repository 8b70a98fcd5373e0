"""The writer of blocks for the terminal."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.text import Text

from bench.show.blocks import BAD, HEAD, PLAIN, QUIET, WARNING, Block, Code, Column, Folded, Lines, Table, split
from bench.show.terminal import console
from bench.show.terminal.console import Stamped

STYLES = {HEAD: "bold", PLAIN: "", WARNING: console.WARNING, BAD: console.BAD, QUIET: console.QUIET}
"""The style of each tone."""

GAP = "  "
CODE_INDENT = 4

LEAST, FEWEST = 40, 12
"""Columns of higher rank go before one that takes the room which is left has fewer characters than the first of these;
without any more to go it has as few as the second."""


@dataclass(frozen=True)
class Fitted:
    """A column and its width in characters."""

    column: Column
    width: int


def render(blocks: Iterable[Block], stamp: str = "") -> RenderableType:
    """Return blocks for rich; every line begins with the stamp, if there is one."""
    content = Group(*(part for block in blocks for part in _parts(block)))
    return Stamped(content, f"{stamp} |", console.BAD) if stamp else content


def _parts(block: Block) -> Iterator[RenderableType]:
    match block:
        case Lines():
            yield from (Text(" " * block.indent + line, STYLES[block.tone]) for line in block.lines)
        case Table() if block.rows:
            yield Fitting(block)
        case Code():
            yield from (Text(" " * CODE_INDENT + line) for line in block.lines)
        case Folded():
            yield from _parts(Lines([block.instead] if block.instead else []))
            yield from _parts(block.notes)


@dataclass(frozen=True)
class Fitting:
    """A table that fits itself to the width of the console."""

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the table, line by line."""
        rows, gap = self.table.rows, self.table.gap
        fitted = fit(self.table.columns, rows, options.max_width, gap)
        yield Text(line(fitted, None, gap).plain, "bold")
        yield from (line(fitted, row, gap) for row in rows)


def fit(columns: Sequence[Column], rows: Sequence[Any], width: int, gap: str = GAP) -> list[Fitted]:
    """Return the columns that aren't empty for these rows and fit side by side into `width` characters."""
    fitting = [
        Fitted(column, max(len(column.heading), *map(len, cells)))
        for column in split(columns)
        if any(cells := [column.text(row) for row in rows])
    ]
    least = [replace(each, width=min(each.width, LEAST)) if each.column.fit else each for each in fitting]
    while _width(least, gap) > width and any(each.column.rank for each in least):
        least.remove(max(least, key=lambda each: each.column.rank))
    return [_grown(each, width - _width(least, gap), fitting) for each in least]


def _width(fitted: Sequence[Fitted], gap: str) -> int:
    return sum(each.width + len(gap) for each in fitted) - len(gap)


def _grown(each: Fitted, room: int, whole: Sequence[Fitted]) -> Fitted:
    """Return a column that takes the room that is left, or gives what lacks, if its cells can be said in less."""
    if not each.column.fit:
        return each
    most = next(other.width for other in whole if other.column is each.column)
    return replace(each, width=max(FEWEST, min(most, each.width + room)))


def line(fitted: Sequence[Fitted], row: Any, gap: str = GAP, style: str = "") -> Text:
    """Return the cells of a row, or the headings, side by side: text to the left, numbers to the right."""
    whole = Text(style=style)
    for each in fitted:
        column = each.column
        if row is None:
            cell = column.heading[: each.width]
        else:
            cell = column.fit(row, each.width) if column.fit else column.text(row)
        aligned = cell.rjust(each.width) if column.number else cell.ljust(each.width)
        whole.append(aligned + gap, column.style(row) if column.style and row is not None else "")
    whole.rstrip()
    return whole
