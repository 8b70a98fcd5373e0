"""Consoles for a terminal, a file or a string, a stamp on every line, and the styles of text."""

import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.table import Table as Grid
from rich.text import Text

from bench.analyse.standing import FASTEST, NOTHING, Choice
from bench.show.blocks import HEAD, PLAIN, Block, Code, Column, Folded, Lines, Table, split
from bench.show.rows import UNTRIED
from bench.stats.best import GOOD as AS_GOOD

PLAIN_WIDTH = 180
"""The width if no terminal sets one: every column of the results fits."""


STYLES = {HEAD: "bold", PLAIN: "", "warning": "yellow", "bad": "red", "quiet": "dim"}
"""The style of each tone."""

GAP = "  "
CODE_INDENT = 4

LEAST, FEWEST = 40, 12
"""Columns of higher rank go before one that takes the room which is left has fewer characters than the first of these;
without any more to go it has as few as the second."""


def console(file: IO[str] | None = None, *, stderr: bool = False) -> Console:
    """Return a console on a file, standard output by default; if it is no terminal, it is wide and without colour."""
    target = Console(file=file, stderr=stderr, highlight=False)
    if not target.is_terminal and "COLUMNS" not in os.environ:
        target.width = PLAIN_WIDTH
    return target


def rendered(renderable: RenderableType, *, width: int = PLAIN_WIDTH, colour: bool = False) -> str:
    """Return what a console of this width would show, with ANSI codes only if `colour` is set."""
    target = Console(
        file=io.StringIO(),
        width=width,
        highlight=False,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        legacy_windows=False,
    )
    with target.capture() as capture:
        target.print(renderable)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def table(first: str, texts: Sequence[str] = (), numbers: Sequence[str] = ()) -> Grid:
    """Return an empty table: a first column that folds, then columns of text, then of numbers to the right."""
    columns = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    columns.add_column(first, overflow="fold")
    for title in texts:
        columns.add_column(title, no_wrap=True)
    for title in numbers:
        columns.add_column(title, justify="right", no_wrap=True)
    return columns


def definitions(entries: Mapping[str, str], style: str = "", *, indented: bool = False) -> Grid:
    """Return a list of words with their meanings, which fold."""
    grid = Grid.grid(padding=(0, 2), pad_edge=indented)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for word, meaning in entries.items():
        grid.add_row(Text(word), Text(meaning), style=style)
    return grid


@dataclass(frozen=True)
class Stamped:
    """A renderable with a stamp at the start of every line, also of the parts of a wrapped line."""

    content: RenderableType
    stamp: str
    style: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        stamp = Segment(f"{self.stamp} ", Style.parse(self.style))
        width = max(options.max_width - stamp.cell_length, 1)
        for line in console.render_lines(self.content, options.update(width=width), pad=False):
            yield stamp
            yield from line
            yield Segment.line()


GOOD = "bold green"
BAD = "red"
WARNING = "yellow"
QUIET = "dim"


def style_of_status(status: str) -> str:
    """Return the style of a status that isn't ok: loud only if something went wrong."""
    return QUIET if status in UNTRIED else BAD


def style_of_choice(choice: Choice) -> str:
    """Return the style of a choice: loud if it costs next to nothing, or if nothing was measured."""
    if choice.standing == NOTHING:
        return BAD
    return GOOD if choice.standing == FASTEST or choice.high <= AS_GOOD else "bold"


@dataclass(frozen=True)
class Fitted:
    """A column and its width in characters."""

    column: Column
    width: int


def render(blocks: Iterable[Block], stamp: str = "") -> RenderableType:
    """Return blocks for rich; every line begins with the stamp, if there is one."""
    content = Group(*(part for block in blocks for part in _parts(block)))
    return Stamped(content, f"{stamp} |", BAD) if stamp else content


def _parts(block: Block) -> Iterator[RenderableType]:
    match block:
        case Lines():
            yield from (Text(" " * block.indent + row_line, STYLES[block.tone]) for row_line in block.lines)
        case Table() if block.rows:
            yield Fitting(block)
        case Code():
            yield from (Text(" " * CODE_INDENT + row_line) for row_line in block.lines)
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
        yield Text(row_line(fitted, None, gap).plain, "bold")
        yield from (row_line(fitted, row, gap) for row in rows)


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


def row_line(fitted: Sequence[Fitted], row: Any, gap: str = GAP, style: str = "") -> Text:
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
