"""A shard of a sweep: its part for one of several machines."""

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.plan.case import Point
from bench.plan.errors import WrongRequest

FORM = re.compile(r"([0-9]+)/([0-9]+)")

OF_THE_MACHINE = ("threads", "allocator")
"""The columns that follow from the machine if a sweep doesn't give them: another node may have other values."""


@dataclass(frozen=True)
class Shard:
    """One of `count` parts of a sweep; `number` counts from 1."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def parse(text: str) -> Shard:
    """Return the shard that a text such as `2/4` names; raises WrongRequest if it names none."""
    match = FORM.fullmatch(text)
    shard = Shard(*map(int, match.groups())) if match else Shard(0, 0)
    if not 1 <= shard.number <= shard.count:
        raise WrongRequest(f"--shard {text} must be I/N with whole numbers and 1 <= I <= N, such as 1/4")
    return shard


def part(points: Sequence[Point], shard: Shard) -> tuple[Point, ...]:
    """Return the points of a shard, in their order.

    Points that differ in the dtype alone are measured together, so they stay together. Such groups are ordered by a
    hash and dealt out in turns: no shard has more than one group more than another, and shapes of all sizes are mixed.
    Raises WrongRequest if there are fewer groups than shards.
    """
    groups: dict[Point, list[Point]] = {}
    for point in points:
        groups.setdefault(dataclasses.replace(point, dtype=""), []).append(point)
    if shard.count > len(groups):
        raise WrongRequest(
            f"the sweep has {len(groups)} points that can be measured apart, so at most "
            f"{len(groups)} shards, got {shard.count}"
        )
    order = sorted(groups, key=lambda point: (_hash(point), point.threads, point.allocator))
    mine = {point for group in order[shard.number - 1 :: shard.count] for point in groups[group]}
    return tuple(point for point in points if point in mine)


def machine_columns(machines: Iterable[Iterable[Point]]) -> frozenset[str]:
    """Return the columns that follow from the machine: all points of a machine have the same value of them."""
    of_each = [[*points] for points in machines]
    return frozenset(
        name
        for name in OF_THE_MACHINE
        if all(len({getattr(point, name) for point in points}) <= 1 for points in of_each)
    )


def without(point: Point, columns: Iterable[str] = OF_THE_MACHINE) -> Point:
    """Return a point in which some columns are empty; without more, those that may follow from the machine."""
    return Point(**{**vars(point), **dict.fromkeys(columns)})


def _hash(point: Point) -> str:
    """Return a hash that is the same on every machine."""
    facts = {name: value for name, value in vars(point).items() if name not in OF_THE_MACHINE}  # as earlier suites did
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
