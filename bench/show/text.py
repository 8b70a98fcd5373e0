"""Points, counts, lists and bounds as text.

Bounds are rounded away from what they bound, so that no sentence says more than its numbers.
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
"""Of more points the names aren't shortened, which takes too long."""

USUAL = {"dtype": "float32", "mode": "inference"}
"""Values that a name needs not mention although a sweep gives them."""

MOST_LISTED = 3
"""At most this number of names stands in a list; the others are counted."""

MOST = 1e6
"""A larger number is not written out: the bounds of two processes that differ wildly have no end."""


def varying(points: Iterable[Point]) -> set[str]:
    """Return the columns in which the points differ, without those that models don't have, if all are models."""
    points = [*points]
    different = {name for name in POINT_COLUMNS if len({getattr(point, name) for point in points}) > 1}
    return different - {*OF_LAYERS} if all(name_of(point.layer).is_model for point in points) else different


def parts(point: Point, columns: Collection[str] = POINT_COLUMNS, *, without: Collection[str] = ()) -> list[str]:
    """Return the words for each of these columns of the point, but none for a value that needs no mention.

    All columns of a usual point give `vit`, `float32`, `inference`, `B=8`, `N=197`, `C=384`, `H=6`, `1 thread`. The
    threads are those of the host: on a device without cores they need no mention.
    """
    unsaid = {*without} if point.kind.has_cores else {*without, "threads"}
    return _words(point, [name for name in _merged(set(columns) - unsaid) if not COLUMNS[name].is_usual(point)])


def shared(points: Collection[Point]) -> str:
    """Return in words the values that all of these points share."""
    return " · ".join(parts(next(iter(points)), without=varying(points)))


def differences(point: Point, columns: Collection[str]) -> str:
    """Return the values of the columns in which this point differs from others, usual ones too.

    It is `plain` if the point has nothing of what others have there, such as a context or a bias.
    """
    return " ".join(_words(point, _merged(columns))) or ("plain" if columns else "")


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
    """Return in what each point differs; usual values that are words are left out where names differ without them."""
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
    """Return the width of a token: `384`, or `49→64` if it changes on the way."""
    return f"{point.channels}" if point.token_len == point.channels else f"{point.token_len}→{point.channels}"


def symbols(points: Collection[Point]) -> str:
    """Return what the letters in the names of these points mean."""
    text = "B: items in a call, N: tokens, C: channels, H: heads"
    if any(point.num_kv_tokens for point in points):
        text += ", M: keys"
    changing = next((point for point in points if point.token_len != point.channels), None)
    if changing is None:
        return text
    return f"{text}; C={width(changing)}: {changing.token_len} values in, {changing.channels} out"


def counted(numbers: int | Collection[int], one: str, many: str = "") -> str:
    """Return a count, or the range of some: `1 point`, `3 points`, `2 to 3 processes`, empty without any.

    `many` is `one` with an s, if it isn't given.
    """
    counts = {numbers} if isinstance(numbers, int) else {*numbers}
    if not counts:
        return ""
    low, high, many = min(counts), max(counts), many or f"{one}s"
    return f"{low:,} to {high:,} {many}" if low < high else f"{low:,} {one if low == 1 else many}"


def share_of(number: int, total: int) -> str:
    """Return how many of all: `2 of 3`, or `all 3`."""
    return f"all {total}" if number == total else f"{number} of {total}"


def capital(words: str) -> str:
    """Return words that begin with a capital letter."""
    return f"{words[0].upper()}{words[1:]}"


def cut(text: str, width: float) -> str:
    """Return a text that fits into a width, with `…` at its end if a part is left out."""
    return text if len(text) <= width else f"{text[: max(0, int(width) - 1)]}…"


def middle(text: str, width: float) -> str:
    """Return a text that fits into a width, with `…` in its middle if a part is left out: names end unlike."""
    if len(text) <= width:
        return text
    end = max(0, int(width) - 1) // 2
    return f"{text[: max(0, int(width) - 1 - end)]}…{text[len(text) - end :]}"


def times(ratio: float, *, up: bool = True) -> str:
    """Return a bound as a ratio with two decimals, rounded up or down: `1.03x`."""
    return f"{_rounded(ratio, 2, ROUND_CEILING if up else ROUND_FLOOR, trim=False)}x"


def more(ratio: float) -> str:
    """Return what a ratio is above 1, rounded up: `3.4%`, whole from 10 % on."""
    share = 100 * (ratio - 1)
    return f"{_rounded(share, 0 if share >= 10 else 1, ROUND_CEILING)}%"


def first(texts: Sequence[str], most: int) -> str:
    """Return the first texts in a list that ends in `…` if there are others."""
    return ", ".join([*texts[:most], *(["…"] if len(texts) > most else [])])


def listed(names: Sequence[str]) -> str:
    """Return names joined by `and`: `sdpa, mha and eager`; for many `sdpa, mha, eager and 2 others`."""
    texts = [*names] if len(names) <= MOST_LISTED + 1 else [*names[:MOST_LISTED], f"{len(names) - MOST_LISTED} others"]
    *some, end = texts or ["others"]
    return f"{', '.join(some)} and {end}" if some else end


def memory_setting(points: Iterable[Point]) -> list[str]:
    """Return in a sentence what a usual program does otherwise with freed memory; none if these points do the same."""
    if not any(point.kind.is_in_host_memory and point.allocator == RETAINED for point in points):
        return []
    return [f"freed memory stays in the process ({RETAINED}); --allocator system measures the C library's defaults"]


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


def _rounded(value: float, digits: int, towards: str, *, trim: bool = True) -> str:
    # a float as people read it: 1.1 % is not rounded up to 1.2 % because it is stored as 1.1000000000000001
    if value >= MOST:
        return f"over {MOST:,.0f}"
    step = Decimal(1).scaleb(-digits)
    text = str(Decimal(f"{value:.9g}").quantize(step, rounding=towards))
    return text.rstrip("0").rstrip(".") if trim and "." in text else text
