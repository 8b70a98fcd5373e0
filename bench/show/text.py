"""Points, counts, lists and bounds as text.

Bounds are rounded to the safe side, so that no sentence claims more than its numbers.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from bench.plan.case import COLUMNS, OF_LAYERS, POINT_COLUMNS, RETAINED, Point
from bench.plan.columns import ValueKind
from impls.catalogue import name_of

LONGEST_NAME = 34
"""The longest name of a point in a table, or of an implementation or an operator in a picture, in characters."""

MOST_NAMES = 300
"""With more points names aren't shortened, because that takes too long."""

USUAL = {"dtype": "float32", "mode": "inference"}
"""Values that a name need not mention although a sweep gives them."""

MOST_LISTED = 3
"""The most names in a list; the others are counted."""

MOST = 1e6
"""Larger numbers are not written out, because bounds from two wildly different processes can be huge."""


def varying(points: Iterable[Point]) -> set[str]:
    """Return the columns in which the points differ; if all are models, without the columns that models don't have."""
    points = [*points]
    different = {name for name in POINT_COLUMNS if len({getattr(point, name) for point in points}) > 1}
    return different - {*OF_LAYERS} if all(name_of(point.layer).is_model for point in points) else different


def parts(point: Point, columns: Collection[str] = POINT_COLUMNS, *, without: Collection[str] = ()) -> list[str]:
    """Return the words for each of these columns of the point; usual values are left out.

    All columns of a usual point give `vit`, `float32`, `inference`, `B=8`, `N=197`, `C=384`, `H=6`, `1 thread`. Threads
    of the host are left out on a device without cores.
    """
    unsaid = {*without} if point.kind.has_cores else {*without, "threads"}
    return _words(point, [name for name in _merged(set(columns) - unsaid) if not COLUMNS[name].is_usual(point)])


def shared(points: Collection[Point]) -> str:
    """Return the values that all of these points share, in words."""
    return " · ".join(parts(next(iter(points)), without=varying(points)))


def differences(point: Point, columns: Collection[str]) -> str:
    """Return the point's values in the columns where points differ, including usual ones.

    It is `plain` if the point lacks what others have there, such as a context or a bias.
    """
    return " ".join(_words(point, _merged(columns))) or ("plain" if columns else "")


def names(points: Collection[Point], longest: float = math.inf) -> dict[Point, str]:
    """Return a name for each point that distinguishes it from the others.

    If some names are too long, columns that aren't needed to tell points apart are dropped, the longest words first,
    for at most MOST_NAMES points.
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
    """Return the differences of each point; usual words are left out if names differ without them."""
    short = {point: " ".join(_words(point, _merged(columns) - _usual(point))) for point in points}
    is_told = len({*short.values()}) == len(points)
    return {
        point: (name if is_told else "") or differences(point, columns) or "the only point"
        for point, name in short.items()
    }


def _usual(point: Point) -> set[str]:
    texts = {name for name, column in COLUMNS.items() if column.kind is ValueKind.TEXT and column.is_usual(point)}
    return texts | {name for name, value in USUAL.items() if getattr(point, name) == value}


def width(point: Point) -> str:
    """Return the width of a token: `384`, or `49→64` if the layer changes it."""
    return f"{point.channels}" if point.token_len == point.channels else f"{point.token_len}→{point.channels}"


def symbols(points: Collection[Point]) -> str:
    """Return the meaning of the letters in these points' names."""
    text = "B: items in a call, N: tokens, C: channels, H: heads"
    if any(point.num_kv_tokens for point in points):
        text += ", M: keys"
    changing = next((point for point in points if point.token_len != point.channels), None)
    if changing is None:
        return text
    return f"{text}; C={width(changing)}: {changing.token_len} values in, {changing.channels} out"


def counted(numbers: int | Collection[int], one: str, many: str = "") -> str:
    """Return a count, or a range of counts: `1 point`, `3 points`, `2 to 3 processes`; empty without any.

    `many` defaults to `one` with an s.
    """
    counts = {numbers} if isinstance(numbers, int) else {*numbers}
    if not counts:
        return ""
    low, high, many = min(counts), max(counts), many or f"{one}s"
    return f"{low:,} to {high:,} {many}" if low < high else f"{low:,} {one if low == 1 else many}"


def share_of(number: int, total: int) -> str:
    """Return a part of a number: `2 of 3`, or `all 3`."""
    return f"all {total}" if number == total else f"{number} of {total}"


def capital(words: str) -> str:
    """Return words with a capital first letter."""
    return f"{words[0].upper()}{words[1:]}"


def cut(text: str, width: float) -> str:
    """Return a text that fits into a width; a longer one is cut and ends in `…`."""
    return text if len(text) <= width else f"{text[: max(0, int(width) - 1)]}…"


def middle(text: str, width: float) -> str:
    """Return a text that fits into a width; a longer one has `…` in its middle, because names differ at their ends."""
    if len(text) <= width:
        return text
    end = max(0, int(width) - 1) // 2
    return f"{text[: max(0, int(width) - 1 - end)]}…{text[len(text) - end :]}"


def times(ratio: float, *, up: bool = True) -> str:
    """Return a bound as a ratio with two decimals, rounded up or down: `1.03x`."""
    return f"{_rounded(ratio, 2, ROUND_CEILING if up else ROUND_FLOOR, trim=False)}x"


def more(ratio: float) -> str:
    """Return the excess of a ratio over 1, rounded up: `3.4%`, a whole number from 10 % on."""
    share = 100 * (ratio - 1)
    return f"{_rounded(share, 0 if share >= 10 else 1, ROUND_CEILING)}%"


def first(texts: Sequence[str], most: int) -> str:
    """Return the first texts of a list, with `…` at the end if there are more."""
    return ", ".join([*texts[:most], *(["…"] if len(texts) > most else [])])


def listed(names: Sequence[str]) -> str:
    """Return names joined by `and`: `sdpa, mha and eager`; for many `sdpa, mha, eager and 2 others`."""
    texts = [*names] if len(names) <= MOST_LISTED + 1 else [*names[:MOST_LISTED], f"{len(names) - MOST_LISTED} others"]
    *some, end = texts or ["others"]
    return f"{', '.join(some)} and {end}" if some else end


def memory_setting(points: Iterable[Point]) -> list[str]:
    """Return a note that times lack page faults; empty unless freed memory is retained at one of these points."""
    if not any(point.kind.is_in_host_memory and point.allocator == RETAINED for point in points):
        return []
    return ["Times exclude page faults of large tensors; --allocator system includes them, as plain Python does."]


def _words(point: Point, columns: Collection[str]) -> list[str]:
    words = [
        column.described(width(point) if name == "channels" else getattr(point, name))
        for name, column in COLUMNS.items()
        if name in columns
    ]
    return [word for word in words if word]


def _merged(columns: Collection[str]) -> set[str]:
    """Return the columns; one that another column's words include is replaced by that column."""
    return {COLUMNS[name].described_with or name for name in columns}


def _rounded(value: float, digits: int, towards: str, *, trim: bool = True) -> str:
    # a float as people read it: 1.1 % is not rounded up to 1.2 % because it is stored as 1.1000000000000001
    if value >= MOST:
        return f"over {MOST:,.0f}"
    step = Decimal(1).scaleb(-digits)
    text = str(Decimal(f"{value:.9g}").quantize(step, rounding=towards))
    return text.rstrip("0").rstrip(".") if trim and "." in text else text
