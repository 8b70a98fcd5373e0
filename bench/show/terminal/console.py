"""The terminal: consoles, and the writer of blocks."""

import io
import itertools
import os
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.text import Text
from rich.theme import Theme

from bench.plan.controls import visible
from bench.show.blocks import BAD, GOOD, HEAD, PLAIN, QUIET, WARNING, Block, Code, Column, Folded, Lines, Table

PLAIN_WIDTH = 180
"""The width if no terminal sets one: every column of the results fits."""

THEME = Theme({HEAD: "bold", PLAIN: "", WARNING: "yellow", BAD: "red", GOOD: "bold green", QUIET: "dim"})
"""The style of each tone."""

CODE_INDENT = 4

LEAST, FEWEST = 40, 12
"""Columns of higher rank go before those that take the room which is left have fewer characters together than the first
of these; without any more to go each has as few as the second."""


class Safe(Console):
    """A console on which no text commands the terminal: control characters of what is printed are written out."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a renderable."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)

    def on_broken_pipe(self) -> None:
        """Leave it to the program what it means that nobody reads any more."""
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """Return a console on standard output or errors; if that is no terminal, it is wide and without colour."""
    target = Safe(stderr=stderr, highlight=False, theme=THEME)
    if not target.is_terminal and "COLUMNS" not in os.environ:
        target.width = PLAIN_WIDTH
    return target


def render(blocks: Iterable[Block]) -> RenderableType:
    """Return blocks for rich."""
    return Group(*(part for block in blocks for part in _parts(block)))


def rendered(blocks: Iterable[Block], *, width: int = PLAIN_WIDTH, colour: bool = False) -> str:
    """Return blocks as a console of this width would show them, with ANSI codes only if `colour` is set."""
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
        """Yield the table, line by line; without headings it has no line of them."""
        of = self.table
        fitted = _fit(of.columns, of.among or of.rows, options.max_width - of.indent, len(of.gap))
        if any(each.column.heading for each in fitted):
            yield _row_line(fitted, None, of)
        yield from (_row_line(fitted, row, of) for row in of.rows)


@dataclass(frozen=True)
class Fitted:
    """A column and its width in characters."""

    column: Column
    width: int

    @property
    def is_flexible(self) -> bool:
        """Whether the cells can do with less room."""
        return self.column.folds or self.column.fit is not None

    def least(self, flexible: int) -> int:
        """Return the width for which columns of higher rank go, if so many are flexible."""
        return min(self.width, LEAST // flexible) if self.is_flexible else self.width

    def lines(self, row: Any) -> list[str]:
        """Return the lines of a row's cell, without a row those of the heading."""
        column = self.column
        text = column.heading if row is None else column.fit(row, self.width) if column.fit else column.text(row)
        if not column.folds:
            return [text[: self.width]]
        return [part for line in text.splitlines() for part in textwrap.wrap(line, self.width, break_on_hyphens=False)]


def _fit(columns: Iterable[Column], rows: Sequence[Any], width: int, gaps: int) -> list[Fitted]:
    """Return the columns that aren't empty for these rows and fit side by side into `width` characters."""
    fitted = list[Fitted]()
    for column in _split(columns):
        if any(cells := [column.text(row) for row in rows]):
            lines = (line for cell in (column.heading, *cells) for line in cell.splitlines())
            of = Fitted(column, max(map(len, lines)))
            fitted.append(replace(of, width=min(of.width, width)) if of.is_flexible else of)
    flexible = sum(each.is_flexible for each in fitted)
    while sum(each.least(flexible) + gaps for each in fitted) - gaps > width and any(
        each.column.rank for each in fitted
    ):
        fitted.remove(max(fitted, key=lambda each: each.column.rank))
    while sum(each.width + gaps for each in fitted) - gaps > width:
        widest = max((each for each in fitted if each.is_flexible), key=lambda each: each.width, default=None)
        if widest is None or widest.width <= FEWEST:
            break
        fitted[fitted.index(widest)] = replace(widest, width=widest.width - 1)
    return fitted


def _split(columns: Iterable[Column]) -> Iterator[Column]:
    """Yield the columns as a terminal aligns them: each interval is one of its own."""
    for column in columns:
        yield column
        if column.interval:
            yield Column(column.interval_heading, column.interval, rank=column.interval_rank)


def _row_line(fitted: Sequence[Fitted], row: Any, table: Table) -> Text:
    """Return the cells of a row, or the headings, side by side: text to the left, numbers to the right."""
    whole = Text(style=table.head if row is None else table.tone(row) if table.tone else PLAIN)
    lines = itertools.zip_longest(*(each.lines(row) for each in fitted), fillvalue="")
    for number, parts in enumerate(lines):
        whole.append("\n" * bool(number) + " " * table.indent)
        for each, part in zip(fitted, parts, strict=True):
            of, is_number = each.column.tone, each.column.number is not None
            aligned = part.rjust(each.width) if is_number else part.ljust(each.width)
            whole.append(aligned + table.gap, of(row) if of and row is not None else "")
        whole.rstrip()
    return whole
