"""The best rates that this machine's devices have shown, by the name of the environment."""

import contextlib
from pathlib import Path

from bench.plan.case import Point
from bench.store import atomic

PATH = Path(__file__).parents[2] / "results" / "ceilings.json"
"""The file lies beside the runs of this machine and, like them, is not part of the project."""

Rates = dict[str, float]
"""Rates by name; only the best of each is kept."""

ROOF = ("flops_per_s", "bytes_per_s")
"""The rates of large products and copies."""

PROBE = ("products_per_s", "copies_per_s")
"""The rates of the speed probe's work."""


def recall(env_id: str, point: Point, names: tuple[str, ...] = ROOF) -> Rates | None:
    """Return the best rates of the point's device with its dtype and threads; None if they aren't known."""
    known = _known(env_id, point)
    return {name: known[name] for name in names} if {*names} <= known.keys() else None


def remember(env_id: str, point: Point, rates: Rates) -> None:
    """Keep the rates that are better than the known ones."""
    known = _known(env_id, point)
    best = known | {name: max(rate, known.get(name, 0.0)) for name, rate in rates.items()}
    if best != known:
        replace(env_id, point, best)


def replace(env_id: str, point: Point, rates: Rates) -> None:
    """Keep these rates in place of all that were known of the point's device with its dtype and threads."""
    content = atomic.read_objects(PATH)
    content.setdefault(env_id, {})[setting(point)] = rates
    with contextlib.suppress(OSError):  # a later run can measure them again
        atomic.replace_json(PATH, content)


def _known(env_id: str, point: Point) -> Rates:
    known = atomic.read_objects(PATH).get(env_id, {}).get(setting(point))
    values = known if isinstance(known, dict) else {}
    return {name: rate for name, rate in values.items() if type(rate) is float}


def setting(point: Point) -> str:
    """Return the name of the device, dtype and threads of a point."""
    return f"{point.device} {point.dtype} {point.threads}"
