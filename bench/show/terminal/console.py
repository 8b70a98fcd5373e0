"""The terminal: consoles, and the writer of blocks."""

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table as Grid
from rich.text import Text
from rich.theme import Theme

from bench.plan.controls import visible
from bench.show.blocks import BAD, GOOD, HEAD, PLAIN, QUIET, WARNING, Block, Code, Column, Folded, Lines, Table

PLAIN_WIDTH = 180
"""The width without a terminal."""

THEME = Theme({HEAD: "bold", PLAIN: "", WARNING: "yellow", BAD: "red", GOOD: "bold green", QUIET: "dim"})
"""The style of each tone."""

CODE_INDENT = 4
GAP = 2
"""Spaces between two columns."""

LEAST, FEWEST = 40, 12
"""Columns of higher rank are dropped while the folding columns have fewer characters than LEAST together; after that
each may shrink to FEWEST."""


class Safe(Console):
    """A console that escapes the control characters in texts, so that none can control the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a renderable."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError, for the program to handle."""
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """Return a console on standard output or error; without a terminal it is wide and has no colour."""
    target = Safe(stderr=stderr, highlight=False, theme=THEME)
    if not target.is_terminal and "COLUMNS" not in os.environ:
        target.width = PLAIN_WIDTH
    return target


def render(blocks: Iterable[Block]) -> RenderableType:
    """Return blocks for rich."""
    return Group(*(part for block in blocks for part in _parts(block)))


def rendered(blocks: Iterable[Block], *, width: int = PLAIN_WIDTH, colour: bool = False) -> str:
    """Return blocks as text for a console of this width, with ANSI codes only if `colour` is set."""
    target = Safe(
        file=io.StringIO(),
        width=width,
        highlight=False,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        legacy_windows=False,
        theme=THEME,
    )
    with target.capture() as capture:
        target.print(render(blocks))
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def _parts(block: Block) -> Iterator[RenderableType]:
    match block:
        case Lines():
            yield from (Text(" " * block.indent + line, block.tone) for line in block.lines)
        case Table() if block.rows:
            yield Fitting(block.filled)
        case Code():
            yield from (Text(" " * CODE_INDENT + line) for line in block.lines)
        case Folded():
            yield from _parts(block.notes)


@dataclass(frozen=True)
class Fitting:
    """A table that adapts to the width of the console."""

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the table, each section under its heading; without column headings their line is left out."""
        of = self.table
        head, columns = (of.columns[0], of.columns[1:]) if of.in_sections else (None, of.columns)
        widths = _widths(columns, of.rows, options.max_width - of.indent)
        for title, rows in groupby(of.rows, head.text if head else lambda _: ""):
            if head:
                yield from (Text(), Text(title, HEAD))
            yield Padding(_grid(of, columns, widths, [*rows]), (0, 0, 0, of.indent), expand=False)


def _widths(columns: Sequence[Column], rows: Sequence[object], room: int) -> dict[int, int]:
    """Return the width of each remaining column by index; columns of the highest rank are dropped for lack of room."""
    texts = [map(visible, (column.heading, *map(column.text, rows))) for column in columns]
    widths = {
        place: max(cell_len(line) for text in own for line in text.splitlines() or [""])
        for place, own in enumerate(texts)
    }
    folding = [place for place, column in enumerate(columns) if column.folds]

    def lacking(least: int) -> int:
        """Return the missing characters if folding columns have at most `least`."""
        taken = (min(width, least) if place in folding else width for place, width in widths.items())
        return sum(taken) + GAP * (len(widths) - 1) - room

    while lacking(LEAST // max(1, len(folding))) > 0 and any(columns[place].rank for place in widths):
        del widths[max(widths, key=lambda place: columns[place].rank)]
    while lacking(room) > 0 and any(widths[place] > FEWEST for place in folding):
        widths[max(folding, key=widths.__getitem__)] -= 1
    return widths


def _grid(of: Table, columns: Sequence[Column], widths: dict[int, int], rows: Sequence[object]) -> Grid:
    """Return rows side by side: text to the left, numbers to the right."""
    grid = Grid(
        box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style=QUIET if of.in_sections else HEAD,
        show_header=any(columns[place].heading for place in widths),
    )  # fmt: skip
    for place, width in widths.items():
        column = columns[place]
        grid.add_column(
            Text(visible(column.heading)),
            width=width,
            justify="right" if column.number else "left",
            no_wrap=not column.folds,
            overflow="fold" if column.folds else "ellipsis",
        )
    shown = [columns[place] for place in widths]
    for row in rows:
        cells = (Text(visible(column.text(row)), column.tone(row) if column.tone else "") for column in shown)
        grid.add_row(*cells, style=of.tone(row) if of.tone else PLAIN)
    return grid
