"""The implementation to use at a point, the standing of the others, and the candidates that need more measurement.

All implementations take the base. After it only the named one and those that may be faster than it by more than the
requested bound are candidates. If another one is named later, some may become candidates again. An unchanged model
remains a candidate until it is significantly slower, or within the bound.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bench.analyse.rows import Row, measured
from bench.plan.case import AS_IS, CONTROL
from bench.plan.verdicts import OPEN, SLOWER
from bench.stats.best import GOOD, bounds, ends, growth
from bench.stats.contrasts import Contrasts, Values
from bench.stats.estimates import Interval
from impls.catalogue import GRAPH, IMPLEMENTATIONS, name_of

FASTEST: Final = "fastest"
NAMED: Final = "named"

UNDECIDED: Final = "not decided"
"""The standing of a choice that may cost more than DECIDED, or whose cost is unknown."""

ALONE: Final = "only one measured"
NOTHING: Final = "nothing was measured"

NOT_TOLD: Final = "these rows don't tell what to use"
"""The standing of a choice if the row to use is missing, or if no two rows were measured in the same processes."""

DECIDED = 1.10
"""An implementation is recommended if it costs at most this factor; a wider bound tells a user nothing."""

STANDINGS = (FASTEST, NAMED, OPEN, SLOWER)
"""The standings of rows, in the order of a point's rows."""

BEHIND = 1.25
"""An implementation that takes this many times as long as the fastest in the base's first replicate is left out of the
second: a quarter is six times the error of five rounds, and no two processes of one kernel differed by as much. The
fastest always keeps a rival, because alone it has no bound."""


@dataclass(frozen=True)
class Place:
    """The place of an implementation at its point; `rank` 1 is the one to use.

    `standing` is FASTEST if all others are significantly slower, else NAMED for the one to use, OPEN if it may be the
    fastest, SLOWER if another is significantly faster; None without a rival. `slowdown` is its time relative to the
    fastest, with the bounds of `stats.best`; None without a rival.
    """

    rank: int
    standing: str | None = None
    slowdown: Interval | None = None


def is_to_use(name: str) -> bool:
    """Return whether a user can use an implementation: the graph of a module is only a control for others."""
    return name_of(name).base != GRAPH


def cost(row: Mapping[str, Any]) -> tuple[bool, bool, float, float]:
    """Return the key that orders equally fast implementations, the cheapest to use first.

    An unchanged model comes before changed ones, uncompiled before compiled; then memory and the order of the catalogue
    decide.
    """
    name = name_of(str(row["implementation"]))
    order = math.inf if name.is_own else [*IMPLEMENTATIONS].index(name.base)
    memory_bytes = row.get("memory_bytes")
    return (
        name.base != AS_IS,
        row.get("compile_cold_s") is not None,
        math.inf if memory_bytes is None else memory_bytes,
        order,
    )


def places(of: Contrasts, costs: Mapping[str, Any]) -> dict[str, Place]:
    """Return the place of each implementation of a point, the one to use first.

    FASTEST is significantly faster than all others. Without one, the cheapest implementation with an upper bound of at
    most GOOD is named, or else the one with the smallest upper bound.
    """
    if len(of.names) < 2:
        return {name: Place(1) for name in of.names}
    slowdown = bounds(of)
    standings = [SLOWER if low > 1 else OPEN for low in slowdown.low.tolist()]
    good = [at for at, high in enumerate(slowdown.high.tolist()) if high <= GOOD]
    if standings.count(OPEN) == 1 and slowdown.high[standings.index(OPEN)] == 1:
        standings[standings.index(OPEN)] = FASTEST
    elif good:
        standings[min(good, key=lambda at: costs[of.names[at]])] = NAMED
    else:
        least = slowdown.value if np.isnan(slowdown.high).all() else slowdown.high
        standings[int(np.nanargmin(least))] = NAMED
    order = sorted(range(len(of.names)), key=lambda at: (STANDINGS.index(standings[at]), slowdown.value[at]))
    intervals = np.stack([slowdown.value, slowdown.low, slowdown.high], axis=-1).tolist()
    return {
        of.names[at]: Place(rank, standings[at], Interval(*intervals[at])) for rank, at in enumerate(order, start=1)
    }


@dataclass(frozen=True)
class Choice:
    """The implementation to use at a point, from the rows of a table.

    `standing` is FASTEST, or NAMED if `bound` is at most DECIDED; else UNDECIDED. It is ALONE or NOTHING if fewer than
    two implementations were measured, and NOT_TOLD if the rows don't say.
    `name` is the first by rank, even if undecided. `bound` is the most that it can cost, as a ratio to the fastest: 1
    for the fastest, NaN if unknown. `rivals` are the others that may be the fastest, by rank.
    """

    standing: str
    name: str = ""
    bound: float = math.nan
    rivals: tuple[str, ...] = ()

    @property
    def is_decided(self) -> bool:
        """Whether an implementation is recommended."""
        return self.standing in (FASTEST, NAMED)


def by_rank(rows: Sequence[Row]) -> list[Row]:
    """Return the measured rows of one point by rank."""
    return sorted(rows, key=lambda row: int(row["rank"]))


def choice(rows: Sequence[Row]) -> Choice:
    """Return the implementation to use, from the rows of one point; some may be missing."""
    rows = [row for row in measured(rows) if is_to_use(str(row["implementation"]))]
    compared = by_rank([row for row in rows if row["standing"]])
    if not compared and len(rows) == 1:
        return Choice(ALONE, str(rows[0]["implementation"]))
    if not compared or compared[0]["standing"] not in (FASTEST, NAMED):
        return Choice(NOT_TOLD if rows else NOTHING)
    first, *others = compared
    name = str(first["implementation"])
    if first["standing"] == FASTEST:
        return Choice(FASTEST, name, 1.0)
    bound = math.nan if first["slowdown_high"] is None else float(first["slowdown_high"])
    rivals = tuple(str(row["implementation"]) for row in others if row["standing"] == OPEN)
    return Choice(NAMED if bound <= DECIDED else UNDECIDED, name, bound, rivals)


@dataclass(frozen=True)
class Answer:
    """The answer from a point's samples so far.

    `named` is the implementation to use, empty without two that were measured in the same processes. `bound` is the
    most that it can cost, as a share: its slowdown's upper bound minus 1, NaN if unknown. `candidates` need more
    measurement, the named one first; there are none if the answer is good. `needed` is the data still needed for each
    of them, as a multiple of its data so far, NaN if unknown. `replicates` is the number taken so far.
    """

    named: str = ""
    bound: float = math.nan
    candidates: tuple[str, ...] = ()
    needed: tuple[float, ...] = ()
    replicates: int = 0

    @property
    def is_good(self) -> bool:
        """Whether no more measurement is needed."""
        return not self.candidates


def answer(of: Contrasts, costs: Mapping[str, Any], bound: float, replicates: int = 0) -> Answer:
    """Return the answer from the contrasts of a point; it is good for a FASTEST, or if its bound is at most `bound`.

    `costs` orders equally fast implementations, as in `places`. A module's graph is compared only if there is just one
    other implementation.
    """
    every, usable = of.names, [*filter(is_to_use, of.names)]
    of = of.only(usable) if len(usable) > 1 else of
    by_name = places(of, costs)
    name, place = next(iter(by_name.items()), ("", Place(1)))
    if place.slowdown is None:
        return Answer()
    cost = place.slowdown.high - 1
    as_is = by_name.get(AS_IS)
    is_undecided = bool(as_is and as_is.slowdown and as_is.standing == OPEN and as_is.slowdown.high - 1 > bound)
    if place.standing == FASTEST or (cost <= bound and not is_undecided):
        return Answer(name, cost, replicates=replicates)
    row, goal = of.names.index(name), math.log1p(bound)
    most = ends(of)
    growths = growth(most[row] - of.difference[row], goal - of.difference[row])
    left = [
        at
        for at, other in enumerate(of.names)
        if at != row and (not most[row, at] <= goal or (is_undecided and other == AS_IS))
    ]
    needed = [float(growths[at]) for at in left]
    most_needed = float(np.max(needed))
    controls = [each for each in every if each not in of.names]  # measured as long as the candidates
    candidates = (name, *(of.names[at] for at in left), *controls)
    return Answer(name, cost, candidates, (most_needed, *needed, *[most_needed] * len(controls)), replicates)


def rough(bound: float) -> float:
    """Return the bound that all points must reach before any is measured to a finer bound."""
    return bound if 1 + bound >= GOOD else GOOD - 1


def behind(of: Values, kept: Collection[str] = ()) -> set[str]:
    """Return the implementations that are far behind the fastest in the first replicate of a point.

    `kept` and the control are excluded, and so is the nearest one if the fastest has no other rival.
    """
    logs = dict(zip(of.names, of.logs[:, 0].tolist(), strict=True)) if of.names else {}
    order = sorted((name for name in logs if name != CONTROL and not math.isnan(logs[name])), key=logs.__getitem__)
    far = [name for name in order if logs[name] - logs[order[0]] > math.log(BEHIND) and name not in kept]
    return {*(far if len(order) - len(far) > 1 else far[1:])}
