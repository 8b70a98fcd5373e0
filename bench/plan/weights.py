"""How the weights of one module may be those of another: by their names, by their order, or as rows of each other.

A refactoring renames weights, splits a packed projection, packs several, or adds weights. Names and shapes leave
several ways open; which of them is right is known if the outputs agree.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, permutations, product
from typing import Any

from bench.plan.case import AFTER, BEFORE

Shape = tuple[int, ...]

Shapes = Sequence[tuple[str, Sequence[int]]]
"""The names and shapes of weights and buffers, in the order of a state dict."""

Rows = tuple[str, int, int]
"""Rows of a weight, which has no axes of size 1 here: its name, the first row, and the end."""

Sources = Mapping[str, Sequence[Rows]]
"""The rows before of which each weight after is made, in their order; none if it keeps its initial values."""

NAMES, ORDER, ROWS, ADDED = "names", "order", "rows", "added"
"""How weights were found: by equal names; by order and shapes; as rows of others too; beside some that are new."""

WAYS = ("", ADDED, ROWS, ORDER, NAMES)
"""The ways, the worst first; empty if weights were not found."""

MOST_MATCHES = 60
"""The most matches that are tried."""

MOST_PARTS = 3
"""The most parts of a packed weight whose order is varied: queries, keys and values."""

MOST_NAMED = 3
"""The most names of weights in a line."""

MOST_ROWS = 6
"""The most parts of a weight whose rows are named."""

KIND = re.compile(r"(weight|bias)$")


def matches(before: Shapes, after: Shapes, heads: Collection[int] = ()) -> list[Sources]:
    """Return the ways in which weights after may be those before, the likeliest first.

    If all names and shapes are the same, there is one. `heads` are the numbers of heads by which rows may be packed.
    """
    old, new = ({name: tuple(shape) for name, shape in of} for of in (before, after))
    if old == new:
        return [_whole(new)]
    old, new = ({name: _without_ones(shape) for name, shape in of.items()} for of in (old, new))
    same = {name: shape for name, shape in new.items() if old.get(name) == shape}
    found = [*_aligned(old, new, same, heads), *(_aligned(old, new, {}, heads) if same else ())]
    return [each for number, each in enumerate(found) if each not in found[:number]]


def way_of(sources: Sources | None) -> str:
    """Return how weights were found, empty if they were not."""
    if sources is None:
        return ""
    if not all(sources.values()):
        return ADDED
    names = [row[0] for rows in sources.values() for row in rows]
    if len({*names}) < len(names) or any(len(rows) > 1 for rows in sources.values()):
        return ROWS
    return NAMES if names == [*sources] else ORDER


def words_of(sources: Sources, before: Shapes) -> list[str]:
    """Return in words how weights after are made of others before: which rows each takes, in the order of the rows.

    As `q.weight is rows 0 to 7 of qkv.weight, k.weight rows 8 to 15, v.weight rows 16 to 23 (and 2 like it)`. Those
    are like it that differ from it in numbers within their names alone, and share its rows relative to the whole; a
    bias that is made like its weight isn't counted.
    """
    sizes = {name: _without_ones(tuple(shape))[0] for name, shape in before}
    uses = [origin for rows in sources.values() for origin in dict.fromkeys(row[0] for row in rows)]
    made: dict[tuple[str, ...], list[str]] = {}
    for name, rows in sources.items():
        origins = {row[0] for row in rows}
        is_split = len(origins) == 1 and uses.count(rows[0][0]) > 1
        made.setdefault((rows[0][0],) if is_split else (), []).append(name)
    alone = [[name] for name in made.pop((), [])]
    kinds: dict[Any, dict[str, str]] = {}
    for names in (*made.values(), *alone):
        names.sort(key=lambda name: [row[1] for row in sources[name]])
        rows = [row for name in names for row in sources[name]]
        if rows and rows == [(names[0], 0, sizes.get(names[0]))]:
            continue
        first, *others = names
        text = f"{first} {_made_of(sources[first], sizes)}"
        text += "".join(f", {name} {_rows_of(sources[name])}" for name in others)
        shares = [(_changed(first, origin), begin / sizes[origin], end / sizes[origin]) for origin, begin, end in rows]
        kind = (*(_changed(name, first) for name in others), *shares) if rows else ()
        kinds.setdefault(kind, {}).setdefault(KIND.sub("", first), text)
    lines = [[*of.values()] for of in kinds.values()]
    lines.append([f"{name} is gone" for name, _ in before if name not in uses])
    return [each[0] + (f" (and {len(each) - 1} like it)" if each[1:] else "") for each in lines if each]


def _made_of(rows: Sequence[Rows], sizes: Mapping[str, int]) -> str:
    """Return of which weights, and of which of their rows, one is made: `is q.weight, k.weight`."""
    if not rows:
        return "has its initial values"
    if len({row[0] for row in rows}) == 1 and rows[0][1:] != (0, sizes[rows[0][0]]):
        return f"is {_rows_of(rows)} of {rows[0][0]}"
    parts = [
        name if (begin, end) == (0, sizes[name]) else f"{_rows_of([(name, begin, end)])} of {name}"
        for name, begin, end in rows
    ]
    return f"is {_first(parts)}"


def _rows_of(rows: Sequence[Rows]) -> str:
    return f"rows {_first([f'{begin} to {end - 1}' for _, begin, end in rows])}"


def _first(texts: Sequence[str]) -> str:
    return ", ".join([*texts[:MOST_ROWS], *(["…"] if texts[MOST_ROWS:] else [])])


def _changed(one: str, other: str) -> tuple[str, str]:
    """Return in what two names differ, without the parts that both begin or end with, and without numbers."""
    parts = [re.sub(r"\d+", "#", KIND.sub("", name)).split(".") for name in (one, other)]
    while all(parts) and parts[0][-1] == parts[1][-1]:
        parts = [part[:-1] for part in parts]
    while all(parts) and parts[0][0] == parts[1][0]:
        parts = [part[1:] for part in parts]
    first, second = (".".join(part) for part in parts)
    return first, second


def differing(before: Shapes, after: Shapes) -> str:
    """Return in words which weights one side alone has: `weights differ (before qkv.weight, after q.weight, …)`."""
    old, new = ({(name, tuple(shape)): name for name, shape in of} for of in (before, after))
    alone = {
        side: [of[each] for each in of if each not in other]
        for side, of, other in ((BEFORE, old, new), (AFTER, new, old))
    }
    parts = [
        f"only {side} {', '.join(names[:MOST_NAMED])}{', …' * (len(names) > MOST_NAMED)}"
        for side, names in alone.items()
        if names
    ]
    return f"weights differ ({'; '.join(parts)})"


@dataclass(frozen=True)
class Run:
    """Weights before and after that have equally many rows of one width in all."""

    old: tuple[Rows, ...]
    new: tuple[Rows, ...]

    @property
    def kind(self) -> tuple[Shape, Shape]:
        """The rows of each weight: runs of a kind are matched in the same way."""
        old, new = (tuple(end for _, _, end in of) for of in (self.old, self.new))
        return old, new


@dataclass(frozen=True)
class Layout:
    """How the rows of a run lie: the order of its weights before and after, and the turns of its rows.

    A turn `(outer, inner)` takes rows `[outer, inner, …]` to `[inner, outer, …]`.
    """

    old: tuple[int, ...]
    new: tuple[int, ...]
    turn: tuple[int, int] = (1, 1)

    def sources(self, run: Run) -> Sources:
        """Return the rows before of which each weight after of a run is made."""
        rows = _turned([run.old[number] for number in self.old], *self.turn)
        made, begin = {}, 0
        for number in self.new:
            name, _, size = run.new[number]
            made[name] = _part(rows, begin, begin + size)
            begin += size
        return made


def _aligned(
    old: Mapping[str, Shape], new: Mapping[str, Shape], same: Mapping[str, Shape], heads: Collection[int]
) -> Iterator[Sources]:
    """Yield the ways in which weights of the `same` names are the same, and the others are found by their order."""
    runs = [*_runs(*({name: shape for name, shape in of.items() if name not in same} for of in (old, new)))]
    kinds = list(dict.fromkeys(run.kind for run in runs))
    layouts = [[*enumerate(_layouts(*kind, heads))] for kind in kinds]
    likeliest = sorted(islice(product(*layouts), MOST_MATCHES**2), key=lambda chosen: sum(n for n, _ in chosen))
    for chosen in likeliest[:MOST_MATCHES]:
        layout = dict(zip(kinds, (each for _, each in chosen), strict=True))
        found = {name: rows for run in runs for name, rows in layout[run.kind].sources(run).items()}
        yield {**{name: found.get(name, []) for name in new}, **_whole(same)}


def _runs(old: dict[str, Shape], new: dict[str, Shape]) -> Iterator[Run]:
    """Yield the shortest runs among weights of one kind and width, then among what is left of one width."""
    for has_kind in (True, False):
        groups: dict[Any, tuple[list[Rows], list[Rows]]] = {}
        for place, of in enumerate((old, new)):
            for name, shape in of.items():
                kind = (KIND.findall(name) or [name.rpartition(".")[2]]) if has_kind else []
                groups.setdefault((*kind, shape[1:]), ([], []))[place].append((name, 0, shape[0]))
        for run in (run for group in groups.values() for run in _as_long(*group)):
            old = {name: shape for name, shape in old.items() if name not in {row[0] for row in run.old}}
            new = {name: shape for name, shape in new.items() if name not in {row[0] for row in run.new}}
            yield run


def _as_long(old: list[Rows], new: list[Rows]) -> Iterator[Run]:
    """Yield runs of weights that have equally many rows, one after the other."""
    while old and new:
        first, second = [old.pop(0)], [new.pop(0)]
        while (excess := sum(row[2] for row in first) - sum(row[2] for row in second)) and (new if excess > 0 else old):
            (second if excess > 0 else first).append((new if excess > 0 else old).pop(0))
        if not excess:
            yield Run(tuple(first), tuple(second))


def _layouts(old: Shape, new: Shape, heads: Collection[int]) -> Iterator[Layout]:
    """Yield how rows of so many weights may lie: in their order, in another one, and head by head."""
    orders = [
        [*permutations(range(len(of)))] if len(of) <= MOST_PARTS else [tuple(range(len(of)))] for of in (old, new)
    ]
    several = max(len(old), len(new))
    parts = (several,) if several > 1 else (MOST_PARTS, 2)
    turns = [turn for part in parts for count in heads if count > 1 for turn in ((part, count), (count, part))]
    possible = [(1, 1), *(turn for turn in turns if sum(old) % (turn[0] * turn[1]) == 0)]
    for turn in possible:
        yield from (Layout(first, second, turn) for first, second in product(*orders))


def _turned(rows: Sequence[Rows], outer: int, inner: int) -> list[Rows]:
    """Return rows `[outer, inner, …]` as `[inner, outer, …]`."""
    size = sum(end - begin for _, begin, end in rows) // (outer * inner)
    places = [(first * inner + second) * size for second in range(inner) for first in range(outer)]
    return [row for place in places for row in _part(rows, place, place + size)] if outer * inner > 1 else [*rows]


def _part(rows: Sequence[Rows], first: int, last: int) -> list[Rows]:
    """Return rows from the first to the last of all; neighbours in one weight become one."""
    part: list[Rows] = []
    offset = 0
    for name, begin, end in rows:
        low, high = max(first - offset, 0) + begin, min(last - offset, end - begin) + begin
        offset += end - begin
        if low < high and part and part[-1][0] == name and part[-1][2] == low:
            part[-1] = (name, part[-1][1], high)
        elif low < high:
            part.append((name, low, high))
    return part


def _without_ones(shape: Shape) -> Shape:
    return tuple(size for size in shape if size != 1) or (1,)


def _whole(shapes: Mapping[str, Shape]) -> Sources:
    return {name: [(name, 0, _without_ones(shape)[0])] for name, shape in shapes.items()}
