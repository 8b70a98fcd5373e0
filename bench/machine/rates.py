"""The best rates that this machine's devices have shown, and the rule that a rate above them was not worked for.

A run measures the rates of its device by matrix products and a copy, and keeps them in memory, because anybody may
write into a file. An implementation may reach POSSIBLE times that: a layer's own shapes may be a little better. If it
seems to reach more, it is timed again in turns with the products, so that what slows one slows both, and the fastest of
each counts. What the products reach now may raise the best. Then the implementation's new time decides:

- up to POSSIBLE times the best: it is possible, and the best was out of date.
- above BEYOND times the best: it is impossible on any machine. The shortest product takes less than a millisecond and
  fits between two interruptions, so that a load slows the fastest of them far less than BEYOND times.
- between: it is impossible if the machine was quiet meanwhile. If it was not, the case keeps its time and its row says
  that there is a doubt. The machine was not quiet if other processes kept more than BUSY_SHARE of the free cores busy,
  or if the products reached less than SLOWED times the best.
"""

import contextlib
from dataclasses import dataclass

from bench.plan.case import Point
from bench.plan.invocation import RESULTS
from bench.plan.work import Roof, Work
from bench.store import files, units

PATH = RESULTS / "machine" / "ceilings.json"
"""The file lies beside the runs of this machine and, like them, is not part of the project."""

Rates = dict[str, float]
"""Rates by name; only the best of each is kept."""

PROBE = ("products_per_s", "copies_per_s")
"""The rates of the speed probe's work. They are kept with the machine: they tell how fast it was at its best, and end
no case."""


POSSIBLE, BEYOND = 1.25, 10.0

BUSY_SHARE, SLOWED = 0.25, 0.8


def recall(env_id: str, point: Point) -> Rates | None:
    """Return the best rates of the point's device with its dtype and threads; None if they aren't stored."""
    stored = _stored(env_id, point)
    return {name: stored[name] for name in PROBE} if {*PROBE} <= stored.keys() else None


def remember(env_id: str, point: Point, rates: Rates) -> None:
    """Keep the rates that are better than the known ones."""
    stored = _stored(env_id, point)
    best = stored | {name: max(rate, stored.get(name, 0.0)) for name, rate in rates.items()}
    if best == stored:
        return
    content = files.read_objects(PATH)
    content.setdefault(env_id, {})[setting(point)] = best
    with contextlib.suppress(OSError):  # a later run can measure them again
        files.replace_json(PATH, content)
        files.hide(PATH.parent)


def _stored(env_id: str, point: Point) -> Rates:
    stored = files.read_objects(PATH).get(env_id, {}).get(setting(point))
    values = stored if isinstance(stored, dict) else {}
    return {name: rate for name, rate in values.items() if type(rate) is float}


def setting(point: Point) -> str:
    """Return the name of the device, dtype and threads of a point."""
    return f"{point.device} {point.dtype} {point.threads}"


@dataclass(frozen=True)
class Judgement:
    """The best rates that are known of the device now, and what is said of the case.

    An `objection` ends it; a `doubt` is kept with its time.
    """

    best: Roof
    objection: str = ""
    doubt: str = ""


def counted(point: Point, work: Work) -> Work:
    """Return the work that is held against a time: bytes that a cache may hold are left out."""
    return Work(work.flops, 0) if work.least_bytes <= point.kind.copied_bytes else work


def is_possible(work: Work, call_s: float, best: Roof) -> bool:
    """Return whether a call may take as short as this on a device with these rates."""
    return best.least_s(work) <= POSSIBLE * call_s


def judge(work: Work, again_s: float, stored: Roof, now: Roof, others: float) -> Judgement:
    """Return what is said of a case that was timed again in turns with the products, by the rule above.

    `others` is the share of the free cores that other processes kept busy meanwhile.
    """
    best = stored.raised(now)
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
