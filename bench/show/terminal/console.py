"""Consoles for a terminal, a file or a string, a stamp on every line, and the styles of text."""

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from bench.analyse.standing import FASTEST, NOTHING, Choice
from bench.show.rows import UNTRIED
from bench.stats.best import GOOD as AS_GOOD

PLAIN_WIDTH = 180
"""The width if no terminal sets one: every column of the results fits."""


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


def table(first: str, texts: Sequence[str] = (), numbers: Sequence[str] = ()) -> Table:
    """Return an empty table: a first column that folds, then columns of text, then of numbers to the right."""
    columns = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    columns.add_column(first, overflow="fold")
    for title in texts:
        columns.add_column(title, no_wrap=True)
    for title in numbers:
        columns.add_column(title, justify="right", no_wrap=True)
    return columns


def definitions(entries: Mapping[str, str], style: str = "", *, indented: bool = False) -> Table:
    """Return a list of words with their meanings, which fold."""
    grid = Table.grid(padding=(0, 2), pad_edge=indented)
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
