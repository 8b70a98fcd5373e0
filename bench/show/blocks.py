"""Output as blocks, which `terminal/console.py`, `markdown.py` and `pages/parts/page.html` write."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, ClassVar, Final

HEAD: Final = "head"
PLAIN: Final = "plain"
WARNING: Final = "warning"
BAD: Final = "bad"
GOOD: Final = "good"
QUIET: Final = "quiet"
"""The tones of lines and cells."""


@dataclass(frozen=True)
class Cell:
    """A cell of a page: its text, and the number that its column is sorted by, None for a text."""

    text: str
    number: float | None = None


@dataclass(frozen=True)
class Column:
    """A column of a table of rows.

    `text` gives a row's cell, `number` its sort key on a page; a column without `number` is left-aligned text.
    A narrow terminal drops columns with a high `rank` first, those with rank 0 never; then columns that `folds` wrap.
    `tone` gives a cell's tone in a terminal; with `is_code` Markdown writes cells as code.
    """

    heading: str
    text: Callable[[Any], str]
    number: Callable[[Any], float | None] | None = None
    rank: int = 0
    tone: Callable[[Any], str] | None = None
    folds: bool = False
    is_code: bool = False

    def cell(self, row: Any) -> Cell:
        """Return the whole cell of a row."""
        text = self.text(row)
        number = self.number(row) if self.number and text else None
        return Cell(text, None if number is None else float(number))


def right(_row: Any) -> None:
    """Return no number; as a column's `number` it right-aligns texts."""


@dataclass(frozen=True)
class Lines:
    """Lines of one tone, as a list with `is_list`, and in a terminal indented by `indent` spaces.

    With `is_foreign`, the text after a line's first colon comes from other programs and must not format anything.
    """

    kind: ClassVar = "lines"
    lines: Sequence[str]
    tone: str = PLAIN
    is_list: bool = False
    is_foreign: bool = False
    indent: int = 0


@dataclass(frozen=True)
class Table:
    """Rows with columns; a terminal writes a row in its `tone`, indented by `indent` spaces.

    With `in_sections`, a terminal writes the first column as a heading above the rows that share its text.
    """

    kind: ClassVar = "table"
    columns: Sequence[Column]
    rows: Sequence[Any]
    indent: int = 0
    tone: Callable[[Any], str] | None = None
    in_sections: bool = False

    @property
    def cells(self) -> list[list[Cell]]:
        """The cells of each row."""
        return [[column.cell(row) for column in self.columns] for row in self.rows]

    @property
    def filled(self) -> "Table":
        """The table without the columns that are empty in all rows."""
        return replace(self, columns=[each for each in self.columns if any(map(each.text, self.rows))])


def of_texts(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Collection[str] = (), **options: Any
) -> Table:
    """Return a table of ready texts; the columns in `numbers` are right-aligned, the others wrap."""
    columns = [
        Column(heading, itemgetter(place), right if heading in numbers else None, folds=heading not in numbers)
        for place, heading in enumerate(headings)
    ]
    return Table(columns, rows, **options)


def definitions(entries: Mapping[str, str], *, indent: int = 0, tone: str = PLAIN) -> Table:
    """Return words with their meanings as a table without headings; the meanings wrap."""
    columns = [Column("", itemgetter(0)), Column("", itemgetter(1), folds=True)]
    return Table(columns, [*entries.items()], indent=indent, tone=lambda _: tone)


@dataclass(frozen=True)
class Code:
    """Lines of a program, or of a shell with the language `sh`."""

    kind: ClassVar = "code"
    lines: Sequence[str]
    language: str = "python"


@dataclass(frozen=True)
class Folded:
    """Content that is collapsed where possible, with notes; a terminal prints only the notes."""

    kind: ClassVar = "folded"
    title: str
    content: Table | Code
    notes: Lines = Lines([])


Block = Lines | Table | Code | Folded
"""A block; without lines or rows it isn't shown."""

GAP = Lines([""])
"""An empty line in a terminal; elsewhere blocks are separate anyway."""
