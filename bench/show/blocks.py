"""What is shown, as blocks. `terminal/console.py`, `markdown.py` and `pages/parts/page.html` write them."""

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
    """A cell of a page: its text, and the number by which its column is sorted, None for a text."""

    text: str
    number: float | None = None


@dataclass(frozen=True)
class Column:
    """A column of a table of rows.

    `text` is the cell of a row, `number` what a page sorts by: a column without one has texts, which stand to the left.
    A narrow terminal drops columns of high `rank` first, those of rank 0 never, then one that `folds` takes lines.
    `tone` is that of a cell in a terminal; with `is_code` Markdown writes it as code.
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
    """Return no number: texts of a column with this `number` stand to the right."""


@dataclass(frozen=True)
class Lines:
    """Lines of one tone; those of a list stand in a list where there are lists, in a terminal behind `indent` spaces.

    With `is_foreign`, what follows the first colon of a line is text of other programs, which must format nothing.
    """

    kind: ClassVar = "lines"
    lines: Sequence[str]
    tone: str = PLAIN
    is_list: bool = False
    is_foreign: bool = False
    indent: int = 0


@dataclass(frozen=True)
class Table:
    """Rows with columns; a terminal writes a row in its `tone` behind `indent` spaces.

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
    """Return a table whose rows are ready texts; columns of `numbers` stand to the right, the others fold."""
    columns = [
        Column(heading, itemgetter(place), right if heading in numbers else None, folds=heading not in numbers)
        for place, heading in enumerate(headings)
    ]
    return Table(columns, rows, **options)


def definitions(entries: Mapping[str, str], *, indent: int = 0, tone: str = PLAIN) -> Table:
    """Return words with their meanings, which fold, as a table without headings."""
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
    """What is folded away where that is possible, with notes; a terminal has the notes alone."""

    kind: ClassVar = "folded"
    title: str
    content: Table | Code
    notes: Lines = Lines([])


Block = Lines | Table | Code | Folded
"""A block; one without lines or rows is not shown."""

GAP = Lines([""])
"""An empty line in a terminal; elsewhere blocks stand by themselves anyway."""
