"""The rule that a rate above what the device reaches was not worked for.

The best that the device has ever shown, by matrix products and a copy, is kept with the machine. An implementation may
reach MARGIN times that, because a layer's own shapes may be a little better. If it seems to reach more, it is timed
again in turns with the products, so that what slows one slows both, and the fastest of each counts. What the products
reach now may raise the best. Then the implementation's new time decides:

- up to MARGIN times the best: it is possible, and the best was out of date.
- above BEYOND times the best: it is impossible on any machine. The shortest product takes less than a millisecond and
  fits between two interruptions, so that a load slows the fastest of them far less than BEYOND times.
- between: it is impossible if the machine was quiet meanwhile. If it was not, the case keeps its time and its row says
  that there is a doubt. The machine was not quiet if other processes kept more than BUSY_SHARE of the free cores busy,
  or if the products reached less than SLOWED times the best.
"""

from dataclasses import dataclass

from bench.plan.case import Point
from bench.plan.layers.layer import Work
from bench.store import units
from bench.store.roofline import COPIED_BYTES, Roof

MARGIN, BEYOND = 1.25, 10.0

BUSY_SHARE, SLOWED = 0.25, 0.8


@dataclass(frozen=True)
class Judgement:
    """The best rates that are known of the device now, and what is said of the case.

    An `objection` ends it; a `doubt` is kept with its time.
    """

    best: Roof
    objection: str = ""
    doubt: str = ""


def is_believable(known: Roof, now: Roof) -> bool:
    """Return whether a device that reaches these rates now may have reached the known ones, on a quieter machine."""
    return known.flops_per_s <= BEYOND * now.flops_per_s and known.bytes_per_s <= BEYOND * now.bytes_per_s


def counted(point: Point, work: Work) -> Work:
    """Return the work that is held against a time: bytes that a cache may hold are left out."""
    return Work(work.flops, 0) if work.least_bytes <= COPIED_BYTES[point.device.partition(":")[0]] else work


def is_possible(work: Work, call_s: float, best: Roof) -> bool:
    """Return whether a call may take as short as this on a device with these rates."""
    return best.least_s(work) <= MARGIN * call_s


def judge(work: Work, again_s: float, known: Roof, now: Roof, others: float) -> Judgement:
    """Return what is said of a case that was timed again in turns with the products, by the rule above.

    `others` is the share of the free cores that other processes kept busy meanwhile.
    """
    best = known.raised(now)
    if is_possible(work, again_s, best):
        return Judgement(best)
    was_quiet = others <= BUSY_SHARE and now.least_s(work) * SLOWED <= best.least_s(work)
    words = _impossible(work, again_s, best)
    if best.least_s(work) > BEYOND * again_s or was_quiet:
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
