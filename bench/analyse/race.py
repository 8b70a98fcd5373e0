"""The race of a point: who is named so far, what that can cost, and who is measured further.

All implementations take the base. Then only the named one is measured on, and those that may be faster than it by more
than the bound that was asked for: what the others may gain is known well enough. If another one is named later, some of
them may come back. A model as it is stays until it is shown to be slower, or can't cost more than the bound.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.analyse.standing import FASTEST, OPEN, Place, places
from bench.plan.case import AS_IS
from bench.stats.best import GOOD, ends, growth
from bench.stats.contrasts import Contrasts, Values

BEHIND = 1.25
"""One that takes so many times as long as the fastest of the base's first replicate is not measured in the second: that
is six times the error of five rounds, and no process was seen to be slower by a quarter than another of its kernel."""


@dataclass(frozen=True)
class Look:
    """What a point's samples so far say.

    `named` is the implementation to use, empty without two that were measured in the same processes. `bound` is what it
    can cost, as a share: its slowdown's upper bound minus 1, NaN if unknown. `left` are those that are measured on, the
    named one first; none if the point is answered. `growths` say for each of these how many times as much as it was
    measured is still needed, NaN if unknown. `replicates` is the number of those taken.
    """

    named: str = ""
    bound: float = math.nan
    left: tuple[str, ...] = ()
    growths: tuple[float, ...] = ()
    replicates: int = 0

    @property
    def is_answered(self) -> bool:
        """Whether nothing is left to be measured."""
        return not self.left


def look(of: Contrasts, costs: Mapping[str, Any], bound: float, replicates: int = 0) -> Look:
    """Return what the contrasts of a point say: it is answered if one is the fastest, or its bound is at most `bound`.

    `costs` order implementations that are as fast as each other, as in `places`.
    """
    found = places(of, costs)
    name, place = next(iter(found.items()), ("", Place(1)))
    if place.slowdown is None:
        return Look()
    cost = place.slowdown.high - 1
    as_is = found.get(AS_IS)
    is_undecided = bool(as_is and as_is.slowdown and as_is.standing == OPEN and as_is.slowdown.high - 1 > bound)
    if place.standing == FASTEST or (cost <= bound and not is_undecided):
        return Look(name, cost, replicates=replicates)
    row, goal = of.names.index(name), math.log1p(bound)
    most = ends(of)
    needed = growth(of, most, goal)[row]
    left = [
        at
        for at in range(len(of.names))
        if at != row and (not most[row, at] <= goal or (is_undecided and of.names[at] == AS_IS))
    ]
    growths = [float(needed[at]) for at in left]
    return Look(name, cost, (name, *(of.names[at] for at in left)), (float(np.max(growths)), *growths), replicates)


def rough(bound: float) -> float:
    """Return the bound to which all points are answered before one is answered to a finer bound."""
    return bound if 1 + bound >= GOOD else GOOD - 1


def behind(of: Values) -> set[str]:
    """Return the implementations that are far behind the fastest in the first replicate of a point."""
    if not of.names:
        return set()
    lead = of.logs[:, 0] - np.nanmin(of.logs[:, 0])
    return {name for name, each in zip(of.names, lead.tolist(), strict=True) if each > math.log(BEHIND)}
