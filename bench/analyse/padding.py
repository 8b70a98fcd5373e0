"""Items of different lengths: whether packing them or padding them is faster, at each share of padding measured."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bench.analyse.rows import Row, grouped, pair
from bench.analyse.standing import by_rank, is_to_use
from bench.plan.case import Point
from bench.plan.lengths import padding
from impls.catalogue import name_of


@dataclass(frozen=True)
class Packing:
    """A point of items of different lengths: its share of padding, and the first by rank that packs and that pads.

    `verdict` is FASTER if the one that packs is shown to be faster than the other, SLOWER or OPEN. `time_share` and
    `memory_share` are its time and its peak memory over those of the other, None if a memory isn't known.
    """

    point: Point
    padding: float
    packed: str
    padded: str
    verdict: str
    time_share: float
    memory_share: float | None


def packing(point: Point, rows: Sequence[Row]) -> Packing | None:
    """Return what the measured rows of a point say, None unless one that packs and one that pads share a replicate.

    Implementations of a user's own count as neither: nothing tells without torch whether they pack.
    """
    if not point.is_padded:
        return None
    packed, padded = (_first(rows, packs=packs) for packs in (True, False))
    if packed is None or padded is None:
        return None
    of, memories = pair(packed, padded), [row["memory_bytes"] for row in (packed, padded)]
    if not of.times.value > 0:  # NaN: they share no replicate
        return None
    return Packing(
        point,
        padding(point.lengths, point.batch, point.num_tokens),
        of.one,
        of.other,
        of.verdict,
        1 / of.times.value,
        memories[0] / memories[1] if all(memories) else None,
    )


def series(of: Iterable[Packing]) -> list[list[Packing]]:
    """Return the points that differ in their lengths alone, the least share of padding first."""
    groups = grouped(of, lambda each: replace(each.point, lengths=""))
    return [sorted(group, key=lambda each: each.padding) for group in groups.values()]


def _first(rows: Sequence[Row], *, packs: bool) -> Row | None:
    """Return the first row by rank of an implementation to use that packs, or that doesn't; None if there is none."""

    def is_one(name: str) -> bool:
        of = name_of(name)
        return not of.is_own and of.entry.packs is packs and is_to_use(name) and not of.entry.for_profiles

    return next((row for row in by_rank(rows) if is_one(str(row["implementation"]))), None)
