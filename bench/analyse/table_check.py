"""The check of a table of choices: what following it costs at shapes that it was not made from, and if it is followed.

The *regret* of a rule at a shape is the slowdown of what the rule runs there, relative to the fastest core of the
shape, minus 1. The *fidelity* of a table is the share of the shapes at which a program that follows it ran the core
that it names.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.analyse.standing import Answer
from bench.analyse.summary import Summary
from bench.plan.case import Point
from bench.stats.best import bounds, ends
from bench.stats.contrasts import Contrasts
from bench.stats.estimates import Interval
from impls.table import SDPA, choices_of, load, nearest

TABLE = "table"
"""The rule that follows the table; the others are named by the core that they always use."""

OTHERS = (SDPA, "eager")
"""The rules that the table is compared with."""

DECIMALS = 4
"""The decimals of a share in a table."""


@dataclass(frozen=True)
class Checked:
    """A shape at which a table was checked.

    The table names `core`; `ran_it` says whether the program ran that one, None if its kernels aren't known. `regrets`
    are those of the rules with their bounds, by the name of the rule; one that was not measured has none.
    """

    point: Point
    core: str
    ran_it: bool | None
    regrets: Mapping[str, Interval]


def checked(summary: Summary, follower: str, table: Path) -> list[Checked]:
    """Return what was measured at each shape at which both the follower of the table and another core have a time."""
    return [each for point in summary for each in _checked(summary, point, follower, _named(table, point))]


def _named(table: Path, point: Point) -> str:
    """Return the core that a table names at a point."""
    columns = {**vars(point), "head_width": point.channels // point.num_heads, "implementation": ""}
    ((kind, sizes, _),) = choices_of(columns)
    return nearest(load(table, point.threads).choices, kind, sizes)


def _checked(summary: Summary, point: Point, follower: str, core: str) -> Iterator[Checked]:
    of = summary.contrasts(point)
    if follower not in of.names or len(of.names) < 2:
        return
    slowdown = bounds(of)
    regrets = {
        name: Interval(*(float(end[of.names.index(name)]) - 1 for end in (slowdown.value, slowdown.low, slowdown.high)))
        for name in (follower, *OTHERS)
        if name in of.names
    }
    ran = {row["implementation"]: row.get("kernels") for row in summary.rows(point)}
    ran_it = ran[follower] == ran[core] if ran.get(follower) and ran.get(core) else None
    yield Checked(point, core, ran_it, {TABLE if name == follower else name: of for name, of in regrets.items()})


def rules(of: Sequence[Checked]) -> list[str]:
    """Return the rules that have a regret at each shape, that of the table first."""
    return [rule for rule in (TABLE, *OTHERS) if all(rule in each.regrets for each in of)]


def mean(of: Sequence[Checked], rule: str) -> Interval:
    """Return the mean regret of a rule over the shapes, each with the same weight, with the means of its bounds."""
    return Interval(*(_mean([getattr(each.regrets[rule], end) for each in of]) for end in ("value", "low", "high")))


def most(of: Sequence[Checked], rule: str) -> Interval:
    """Return the regret of a rule at the shape where its bound is largest."""
    return max((each.regrets[rule] for each in of), key=lambda regret: regret.high)


def fidelity(of: Sequence[Checked]) -> float:
    """Return the share of the shapes with known kernels at which the program ran what the table names, else NaN."""
    known = [each.ran_it for each in of if each.ran_it is not None]
    return sum(known) / len(known) if known else math.nan


def entry(of: Sequence[Checked], run: str) -> dict[str, Any]:
    """Return what a table says of its check, as `docs/table.schema.json` describes it."""
    regret = {
        rule: {
            "mean": _share(mean(of, rule).value),
            "mean_high": _share(mean(of, rule).high),
            "most": _share(most(of, rule).value),
            "most_high": _share(most(of, rule).high),
        }
        for rule in rules(of)
    }
    return {"run": run, "shapes": len(of), "fidelity": _share(fidelity(of)), "regret": regret}


def answer(of: Contrasts, follower: str, bound: float, replicates: int) -> Answer:
    """Return who is measured on at a shape: the follower, and those from which its distance is not known to `bound`.

    One that is shown to be slower than the follower tells nothing of its regret.
    """
    if follower not in of.names or len(of.names) < 2:
        return Answer()
    row, goal = of.names.index(follower), math.log1p(bound)
    most_ahead, halves = ends(of)[row], ends(of)[row] - of.difference[row]
    left = [at for at in range(len(of.names)) if at != row and not (most_ahead[at] <= goal or halves[at] <= goal)]
    high = float(bounds(of).high[row]) - 1
    if not left:
        return Answer(follower, high, replicates=replicates)
    needed = [float((halves[at] / goal) ** 2 - 1) for at in left]
    candidates = (follower, *(of.names[at] for at in left))
    return Answer(follower, high, candidates, (float(np.max(needed)), *needed), replicates)


def _mean(shares: Sequence[float]) -> float:
    return math.expm1(sum(map(math.log1p, shares)) / len(shares))


def _share(value: float) -> float | None:
    return round(value, DECIMALS) if math.isfinite(value) else None
