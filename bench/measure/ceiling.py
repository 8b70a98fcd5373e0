"""What the device reaches at best, by matrix products and a copy: a rate above it was not worked for.

The rule. The best that the device has ever shown is kept with the machine. An implementation may reach MARGIN times
that, because a layer's own shapes may be a little better. If it seems to reach more, it is timed again for CONFRONTED_S
in turns with the products, so that what slows one slows both, and the fastest of each counts. What the products reach
now may raise the best. Then the implementation's new time decides:

- up to MARGIN times the best: it is possible, and the best was out of date.
- above BEYOND times the best: it is impossible on any machine. The shortest product takes less than a millisecond and
  fits between two interruptions, so that a load slows the fastest of them far less than BEYOND times.
- between: it is impossible if the machine was quiet meanwhile. If it was not, the case keeps its time and its row says
  that there is a doubt. The machine was not quiet if other processes kept more than BUSY_SHARE of the free cores busy,
  or if the products reached less than SLOWED times the best.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter

import torch

from bench.measure.clock import Call, timer
from bench.measure.interference import Interference
from bench.plan.case import Point
from bench.plan.layers.layer import Work
from bench.store import units
from bench.store.roofline import Roof

SIDES = {"cpu": (256, 512, 1024, 2048, 4096), "cuda": (8192, 16384)}
"""The sides of the matrices that are multiplied: small ones find gaps on a busy machine, many cores need large ones."""

LONGEST_S = 0.02
"""No larger product is tried after one that takes longer than this."""

COPIED_BYTES = {"cpu": 1 << 26, "cuda": 1 << 30}
"""The size of the copy. A call that moves less is not held against it, because a cache may be faster than memory."""

LEAST, TAKEN_S, CONFRONTED_S = 3, 0.2, 1.0
"""Products and copy are repeated so often, and so many seconds, alone and in turns with an implementation."""

MARGIN, BEYOND = 1.25, 10.0

BUSY_SHARE, SLOWED = 0.25, 0.8

_seen: dict[tuple[str, str, int], Roof] = {}
"""The best that this process knows, by device, dtype and threads."""


@dataclass(frozen=True)
class Judgement:
    """The best that is known of the device now, and what is said of the case.

    An `objection` ends it; a `doubt` is kept with its time.
    """

    best: Roof
    objection: str = ""
    doubt: str = ""


def judge(
    point: Point,
    work: Work,
    call_s: float,
    known: Roof | None,
    again: Callable[[], float],
    beside: int | None = None,
) -> Judgement:
    """Return whether a call may take as short as this, by the rule above.

    `work` is that of a call; operations that are unknown make no time impossible.
    `known` is the best that was seen before; `again` times the call once more, and `beside` is no neighbour.
    """
    setting = point.device, point.dtype, point.threads
    best = known or _seen.get(setting) or _taken(point)
    if work.least_bytes <= COPIED_BYTES[_kind(point)]:  # a cache may hold them
        work = Work(work.flops, 0)
    if best.least_s(work) <= MARGIN * call_s:
        judgement = Judgement(best)
    else:
        interference = Interference(point.threads, beside)
        now, again_s = _confronted(point, again)
        judgement = _judged(work, again_s, best, now, interference.share())
    _seen[setting] = judgement.best
    return judgement


def _judged(work: Work, call_s: float, known: Roof, now: Roof, others: float) -> Judgement:
    best = known.raised(now)
    excess = best.least_s(work) / call_s
    if excess <= MARGIN:
        return Judgement(best)
    was_quiet = others <= BUSY_SHARE and now.least_s(work) * SLOWED <= best.least_s(work)
    words = _impossible(work, call_s, best)
    if excess > BEYOND or was_quiet:
        return Judgement(best, objection=f"impossible rate: {words}")
    return Judgement(best, doubt=f"perhaps an impossible rate, the machine was too busy to tell: {words}")


def _impossible(work: Work, call_s: float, best: Roof) -> str:
    operations, least_bytes = work.flops or 0, work.least_bytes
    if operations / best.flops_per_s >= least_bytes / best.bytes_per_s:
        rate, limit, unit, of = operations / call_s, best.flops_per_s, "FLOP/s", "a matrix product"
    else:
        rate, limit, unit, of = least_bytes / call_s, best.bytes_per_s, "B/s", "a copy"
    return (
        f"the layer's work at this time would be {units.rate(rate, unit)}; {of} reaches {units.rate(limit, unit)} here"
    )


def _taken(point: Point) -> Roof:
    """Return what products and copy reach now."""
    return _confronted(point, lambda: math.inf, TAKEN_S)[0]


def _confronted(point: Point, again: Callable[[], float], most_s: float = CONFRONTED_S) -> tuple[Roof, float]:
    """Return what products and copy reach in turns with a call, and the least that the call took."""
    clock, again_s = timer(point.device, "host"), math.inf
    products, copy = [*_products(point)], _copy(point)
    product_rates, copy_rate, turns, end = [0.0] * len(products), 0.0, 0, perf_counter() + most_s
    while turns < LEAST or perf_counter() < end:
        again_s = min(again_s, again())
        rates = [operations / clock(product, 1) for operations, product in products]
        copy_rate = max(copy_rate, COPIED_BYTES[_kind(point)] / clock(copy, 1))
        product_rates = [max(pair) for pair in zip(product_rates, rates, strict=True)]
        turns += 1
    return Roof(max(product_rates), copy_rate), again_s


def _products(point: Point) -> Iterator[tuple[int, Call]]:
    """Yield matrix products with their operations, in float32 too: a kernel may compute in it."""
    clock = timer(point.device, "host")
    for dtype in dict.fromkeys((point.dtype, "float32")):
        for side in SIDES[_kind(point)]:
            product = _product(point.device, dtype, side)
            yield 2 * side**3, product
            if clock(product, 1) > LONGEST_S:
                break


def _product(device: str, dtype: str, side: int) -> Call:
    factor = torch.randn(side, side, device=device).to(getattr(torch, dtype))
    result = torch.empty_like(factor)
    return lambda: torch.mm(factor, factor, out=result)


def _copy(point: Point) -> Call:
    source = torch.zeros(COPIED_BYTES[_kind(point)] // 2, dtype=torch.uint8, device=point.device)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def _kind(point: Point) -> str:
    return "cpu" if point.device == "cpu" else "cuda"
