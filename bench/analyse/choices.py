"""The core to use at each point of a run."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench.analyse.standing import cost, places
from bench.analyse.summary import Summary
from bench.plan.case import Point
from bench.plan.device import Kind
from bench.stats.estimates import PAIR, Interval, interval
from impls.catalogue import IMPLEMENTATIONS, parse, shapes_itself
from impls.table import SDPA

CORES = "attend."
"""The package of the implementations that replace the core alone."""


@dataclass(frozen=True)
class CoreChoice:
    """The core to use at a point.

    It takes at most `slowdown_high` times as long as the fastest core there, NaN if nothing tells. `speedup` is how
    many times as fast as sdpa it is. Nothing but sdpa is chosen unless it is shown to be faster than sdpa.
    """

    point: Point
    implementation: str
    slowdown_high: float
    speedup: Interval


def choices(summary: Summary) -> list[CoreChoice]:
    """Return the choice at each point at which sdpa was measured, other than points of whole models and those apart."""
    chosen, timings = [], first_timings(summary)
    for point in summary:
        of = summary.contrasts(point)
        if shapes_itself(point.layer) or SDPA not in of.names or apart(point, timings):
            continue
        gains = {name: interval(of.speedup(name, SDPA), PAIR).exp() for name in of.names if is_core(name)}
        compared = of.only([name for name, gain in gains.items() if name == SDPA or gain.is_known])
        places_by_name = places(compared, {row["implementation"]: cost(row) for row in summary.rows(point)})
        first = next(iter(places_by_name))
        name = first if gains[first].low > 1 else SDPA
        slowdown = places_by_name[name].slowdown
        speedup = gains[name] if name != SDPA else Interval(1.0, 1.0, 1.0)
        chosen.append(CoreChoice(point, name, slowdown.high if slowdown else math.nan, speedup))
    return chosen


def first_timings(points: Iterable[Point]) -> dict[Kind, str]:
    """Return for each kind of device the first of its timings that points have: a table has one core for a shape."""
    found = {(point.kind, point.timing) for point in points}
    return {kind: next(each for each in kind.timings if (kind, each) in found) for kind, _ in found}


def apart(point: Point, timings: Mapping[Kind, str]) -> str:
    """Return what a call of a point's core has that a table of choices doesn't know, empty if it has nothing such.

    `timings` are those of the table.
    """
    found = {
        f"timing {point.timing}": point.timing != timings[point.kind],
        "mode backward": point.mode == "backward",
        "windows": point.window_size is not None,
        "a bias": point.attn_bias not in (None, "none"),
        "padding": point.mask == "padding",
        "items of different lengths": point.is_padded,
        "other keys": point.num_kv_tokens is not None,
        "grouped heads": point.num_kv_heads is not None,
    }
    return next((what for what, is_there in found.items() if is_there), "")


def is_core(name: str) -> bool:
    """Return whether an implementation replaces the core alone and needs no compilation, or is a user's own."""
    entry = IMPLEMENTATIONS.get(parse(name).base)
    return ":" in name if entry is None else entry.adapter.startswith(CORES) and not entry.compiles


def gain(of: Sequence[CoreChoice]) -> float:
    """Return the most that a choice is shown to be faster than sdpa, as a share; 0 if none is."""
    return max((choice.speedup.low for choice in of), default=1.0) - 1
