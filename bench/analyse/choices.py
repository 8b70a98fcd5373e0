"""Which core to use at each point of a run, of those that a program can put in place of another one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.analyse.standing import cost, places
from bench.analyse.summary import Summary
from bench.plan.case import Point
from bench.stats.contrasts import Contrasts
from bench.stats.estimates import Interval, intervals, joined
from impls.catalogue import KNOWN, is_model, parse
from impls.table import SDPA

CORES = "impls.attend."
"""The package of the implementations that replace the core alone."""


@dataclass(frozen=True)
class Choice:
    """The core to use at a point.

    It takes at most `slowdown_high` times as long as the fastest core there, NaN if nothing tells. `speedup` is how
    many times as fast as sdpa it is. Nothing but sdpa is chosen unless it is shown to be faster than sdpa.
    """

    point: Point
    implementation: str
    slowdown_high: float
    speedup: Interval


def choices(summary: Summary) -> list[Choice]:
    """Return the choice at each point at which sdpa was measured, other than points of whole models."""
    made = []
    for point in (point for point in summary if not is_model(point.layer)):
        costs = {row["implementation"]: cost(row) for row in summary.rows(point)}
        of = summary.contrasts(point)
        names = [name for name in of.names if is_core(name)]
        if SDPA in names:
            made.append(_choice(point, of.only(names), costs))
    return made


def is_core(name: str) -> bool:
    """Return whether an implementation replaces the core alone and needs no compilation, or is a user's own."""
    entry = KNOWN.get(parse(name).base)
    return ":" in name if entry is None else entry.adapter.startswith(CORES) and not entry.compiles


def _choice(point: Point, of: Contrasts, costs: Mapping[str, Any]) -> Choice:
    ratios = {name: intervals(joined([of.speedup(name, SDPA)]))[0].exp() for name in of.names}
    compared = of.only([name for name in of.names if name == SDPA or ratios[name].is_known])
    found = places(compared, costs)
    first = next(iter(found))
    name = first if ratios[first].low > 1 else SDPA
    slowdown = found[name].slowdown
    speedup = ratios[name] if name != SDPA else Interval(1.0, 1.0, 1.0)
    return Choice(point, name, slowdown.high if slowdown else float("nan"), speedup)


def gain(of: Sequence[Choice]) -> float:
    """Return the most that a choice is shown to be faster than sdpa, as a share; 0 if none is."""
    return max((choice.speedup.low for choice in of), default=1.0) - 1
