"""The best rates that this machine's devices have shown, by the name of the environment: kept beside the runs."""

import contextlib
import json
from pathlib import Path
from typing import Any

from bench.plan.case import Point
from bench.store import atomic

PATH = Path(__file__).parents[2] / "results" / "ceilings.json"
"""Beside the runs of this machine, and like them not part of the project."""

Rates = dict[str, float]
"""`flops_per_s` and `bytes_per_s`."""


def recall(env_id: str, point: Point) -> Rates | None:
    """Return the best that the point's device has shown with its dtype and threads; None if nothing is known."""
    known = _known().get(env_id, {}).get(_setting(point))
    is_whole = isinstance(known, dict) and {type(value) for value in known.values()} == {float}
    return known if is_whole and {*known} == {"flops_per_s", "bytes_per_s"} else None


def remember(env_id: str, point: Point, rates: Rates | None) -> None:
    """Keep rates, as far as they are better than what is known.

    Nothing happens if they aren't, or if the file can't be written: a later run can see them again.
    """
    known = recall(env_id, point) or {}
    best = {name: max(rate, known.get(name, 0.0)) for name, rate in (rates or known).items()}
    if best == known:
        return
    content = _known()
    content.setdefault(env_id, {})[_setting(point)] = best
    with contextlib.suppress(OSError):
        PATH.parent.mkdir(parents=True, exist_ok=True)
        atomic.replace(PATH, json.dumps(content, indent=2) + "\n")


def _setting(point: Point) -> str:
    return f"{point.device} {point.dtype} {point.threads}"


def _known() -> dict[str, Any]:
    """Return what the file holds; nothing if it can't be read, because rates can be measured again."""
    try:
        content = json.loads(PATH.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) and all(isinstance(v, dict) for v in content.values()) else {}
