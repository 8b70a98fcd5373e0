"""A picture as a declaration: its rows, its axes, its marks, and the words around it.

A function of `bench.show.charts` makes a `Picture` of results. `bench.show.figures` draws it, by Matplotlib.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from impls.catalogue import Dash, Style

Rows = Sequence[dict[str, Any]]
"""Rows by field: those of a table of results, or what is drawn of them."""

Place = str | float | None
"""Where marks stand along an axis: the field of a row that says it, one value for all, or None for the whole axis."""

SLOT = 0.8
"""The share of its place on an axis that the marks of all series take, if they stand side by side."""


class Kind(StrEnum):
    """How an axis places its values: evenly, by their logarithms, or each at a place of its own in the order of ticks.

    Places go from left to right, and from the top down.
    """

    LINEAR = "linear"
    LOG = "log"
    PLACES = "places"


@dataclass(frozen=True, kw_only=True)
class Scale:
    """An axis: its title, its kind, its ends, and its ticks with their labels.

    The ends of a linear axis may fall. The ticks of an axis of places are its values.
    """

    title: str
    kind: Kind = Kind.LOG
    ends: tuple[float, float] | None = None
    ticks: Sequence[Any] = ()
    labels: Sequence[str] = ()

    @classmethod
    def log(
        cls, title: str, ends: tuple[float, float], ticks: Sequence[float], label: Callable[[float], str] = str
    ) -> "Scale":
        """Return a logarithmic axis whose ticks are written by a function."""
        return cls(title=title, ends=ends, ticks=ticks, labels=[*map(label, ticks)])

    @classmethod
    def places(cls, title: str, values: Sequence[Any], labels: Sequence[str] = ()) -> "Scale":
        """Return an axis with a place for each value, which is its own label if there are none."""
        return cls(title=title, kind=Kind.PLACES, ticks=values, labels=labels or [*map(str, values)])


class Shape(StrEnum):
    """What a mark is.

    A line joins the rows of each series, and marks them if it `has_points`. A band is the area between `y` and `y2`,
    along `x`. A rule is a straight line, from `x` and `y` to `x2` or `y2`. A cell fills its places, or reaches from `x`
    to `x2` and from `y` to `y2`.
    """

    LINE = "line"
    BAND = "band"
    RULE = "rule"
    POINT = "point"
    CELL = "cell"
    TEXT = "text"


@dataclass(frozen=True, kw_only=True)
class Marks:
    """A mark for each row that has all the values that it needs, or, of lines and bands, one for each series.

    Their rows are those of the panel, of these only those of a `kind` if it is named, unless they have `rows` of their
    own.

    Colour, dash and marker are those of the series in the field `by`, which is an implementation unless `styles` has
    its style; without series those given here. A `marker` of marks, and `is_hollow`, precede those of their series. A
    colour is `#rrggbb` or a name of `palette.COLOURS`. The rows may have a colour of their own in the field
    `fill`, or an implementation there, of whose colour a cell gets the share in the field `strength`.

    Series that are `side_by_side` share their place on the vertical axis. Names of series, or the field `text`, stand
    `beside` the panel: those of lines at their ends, of texts at their height, of points from the top.

    Lengths and sizes are in points: the width of lines, the size of points and of text, and by how much a text is
    shifted. The place `align` of a text is its left end, its middle or its right end.
    """

    shape: Shape
    x: Place = None
    y: Place = None
    x2: Place = None
    y2: Place = None
    rows: Rows | None = None
    kind: str = ""
    by: str = ""
    styles: Mapping[str, Style] = field(default_factory=dict)
    colour: str = "ink"
    marker: str = ""
    has_points: bool = True
    dash: Dash = ()
    fill: str = ""
    strength: str = ""
    text: str = ""
    width: float = 1.4
    size: float = 7.0
    opacity: float = 1.0
    align: str = "center"
    shift: tuple[float, float] = (0.0, 0.0)
    is_bold: bool = False
    is_hollow: bool = False
    has_caps: bool = False
    side_by_side: bool = False
    beside: bool = False

    @property
    def fields(self) -> list[str]:
        """The fields of rows that a mark needs."""
        return [each for each in (self.x, self.y, self.x2, self.y2, self.text) if isinstance(each, str) and each]

    def drawn(self, rows: Rows) -> list[dict[str, Any]]:
        """Return the rows that have a mark, of all rows of the panel."""
        own = rows if self.rows is None else self.rows
        return [
            row
            for row in own
            if (not self.kind or row["kind"] == self.kind) and all(row.get(name) is not None for name in self.fields)
        ]


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Marks on two axes, the first ones undermost; the height is in inches."""

    x: Scale
    y: Scale
    marks: Sequence[Marks]
    height: float
    rows: Rows = ()
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A picture: its name, which is that of its files, its words, and its panels.

    The heading comes first, then the alarm and the facts; notes stand below. A stack is panels below each other with
    one axis `x`; `across` of them stand beside each other. `legend` has styles with their words, below the panels.
    Widths and gaps are in inches.
    """

    name: str
    heading: str
    facts: Sequence[str]
    notes: Sequence[str]
    stacks: Sequence[Sequence[Panel]]
    alarm: Sequence[str] = ()
    legend: Mapping[str, Style] = field(default_factory=dict)
    across: int = 1
    width: float = 5.4
    gap: float = 0.12
