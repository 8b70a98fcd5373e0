"""Points and counts as text."""

import dataclasses
import math
from collections.abc import Collection, Iterable
from typing import Any

from bench.plan.case import COLUMNS, POINT_COLUMNS, Point

LONGEST_NAME = 34
"""The longest name of a point in a table with a line for each, in characters."""

MOST_NAMES = 300
"""Of more points the names aren't shortened, which takes too long."""


def varying(points: Iterable[Point]) -> set[str]:
    """Return the columns in which the points differ."""
    columns = zip(*(dataclasses.astuple(point) for point in points), strict=True)
    return {name for name, values in zip(POINT_COLUMNS, columns, strict=False) if len(set(values)) > 1}


def parts(point: Point, columns: Collection[str] = POINT_COLUMNS, *, without: Collection[str] = ()) -> list[str]:
    """Return the words for each of these columns of the point, but none for a value that needs no mention.

    All columns of a usual point give `vit`, `float32`, `inference`, `B=8`, `N=197`, `C=384`, `H=6`, `1 thread`.
    """
    return _words(
        point, [name for name in _merged(set(columns).difference(without)) if not COLUMNS[name].is_usual(point)]
    )


def shared(points: Collection[Point]) -> str:
    """Return in words the values that all of these points share."""
    return " · ".join(parts(next(iter(points)), without=varying(points)))


def differences(point: Point, columns: Collection[str]) -> str:
    """Return the values of the columns in which this point differs from others, usual ones too."""
    return " ".join(_words(point, _merged(columns)))


def names(points: Collection[Point], longest: float = math.inf) -> dict[Point, str]:
    """Return the name of each point among the others.

    If some are too long, and they aren't too many, all lose the columns without which they still differ, the longest
    words first.
    """
    columns = varying(points)
    named = _named(points, columns)
    while len(points) <= MOST_NAMES and any(len(name) > longest for name in named.values()):
        shorter = {column: _named(points, columns - {column}) for column in sorted(columns)}
        distinct = {column: each for column, each in shorter.items() if len({*each.values()}) == len(named)}
        if not distinct:
            break
        column = min(distinct, key=lambda column: sum(map(len, distinct[column].values())))
        columns, named = columns - {column}, distinct[column]
    return named


def _named(points: Collection[Point], columns: set[str]) -> dict[Point, str]:
    return {point: differences(point, columns) or "the only point" for point in points}


def width(point: Point) -> str:
    """Return the width of a token: `384`, or `49→64` if it changes on the way."""
    return f"{point.channels}" if point.token_len == point.channels else f"{point.token_len}→{point.channels}"


def symbols(points: Collection[Point]) -> str:
    """Return what the letters in the names of these points mean."""
    text = "B: items in a call, N: tokens, C: channels, H: heads"
    changing = next((point for point in points if point.token_len != point.channels), None)
    if changing is None:
        return text
    return f"{text}; C={width(changing)}: {changing.token_len} values in, {changing.channels} out"


def order(point: Point) -> tuple[tuple[bool, Any], ...]:
    """Return what sorts points by their columns, one after the other; an empty one comes last."""
    return tuple((value is None, 0 if value is None else value) for value in vars(point).values())


def counted(numbers: Collection[int], one: str, many: str) -> str:
    """Return the range of some counts: `1 process`, `3 processes`, `2 to 3 processes`, empty without any."""
    if not numbers:
        return ""
    low, high = min(numbers), max(numbers)
    return f"{low} to {high} {many}" if low < high else f"{low} {one if low == 1 else many}"


def _words(point: Point, columns: Collection[str]) -> list[str]:
    words = [
        column.described(width(point) if name == "channels" else getattr(point, name))
        for name, column in COLUMNS.items()
        if name in columns
    ]
    return [word for word in words if word]


def _merged(columns: Collection[str]) -> set[str]:
    """Return the columns; one that is said within the words of another is replaced by that other."""
    return {COLUMNS[name].described_with or name for name in columns}


def cut(text: str, width: float) -> str:
    """Return a text that fits into a width, with `…` at its end if a part is left out."""
    return text if len(text) <= width else f"{text[: max(0, int(width) - 1)]}…"
