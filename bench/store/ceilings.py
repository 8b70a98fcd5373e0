"""The best rates that this machine's devices have shown, by the name of the environment."""

import contextlib
from pathlib import Path

from bench.plan.case import Point
from bench.store import atomic

PATH = Path(__file__).parents[2] / "results" / "ceilings.json"
"""The file lies beside the runs of this machine and, like them, is not part of the project."""

Rates = dict[str, float]
"""`flops_per_s` and `bytes_per_s`."""


def recall(env_id: str, point: Point) -> Rates | None:
    """Return the best rates of the point's device with its dtype and threads; None if they aren't known."""
    known = atomic.read_objects(PATH).get(env_id, {}).get(_setting(point))
    if not isinstance(known, dict) or {*known} != {"flops_per_s", "bytes_per_s"}:
        return None
    return known if all(type(rate) is float for rate in known.values()) else None


def remember(env_id: str, point: Point, rates: Rates | None) -> None:
    """Keep the rates that are better than the known ones."""
    known = recall(env_id, point) or {}
    best = {name: max(rate, known.get(name, 0.0)) for name, rate in (rates or known).items()}
    if best == known:
        return
    content = atomic.read_objects(PATH)
    content.setdefault(env_id, {})[_setting(point)] = best
    with contextlib.suppress(OSError):  # a later run can measure them again
        atomic.replace_json(PATH, content)


def _setting(point: Point) -> str:
    return f"{point.device} {point.dtype} {point.threads}"
