"""The results of self-checks on this machine, by the name of its environment: later runs carry them in their state."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.store import atomic
from bench.store.environment import Environment

PATH = Path(__file__).parents[2] / "results" / "selfcheck.json"
"""Beside the runs of this machine, and like them not part of the project."""

SELFCHECK = "selfcheck"

Result = dict[str, Any]
"""`detectable` (the smallest change, as a share, by the number of threads), `false_alarms`, `rows`, `processes`."""


@dataclass(frozen=True)
class Detectable:
    """The smallest change that a machine detects, as a share, by the number of threads, with `processes` on each side.

    `false_alarms` were raised over `rows` that hadn't changed; `rows` is 0 if that isn't known.
    """

    share: dict[int, float]
    processes: int
    false_alarms: int
    rows: int


def remember(env_id: str, result: Result) -> Path:
    """Keep the result of a self-check in place of an earlier one of the same environment."""
    content = {**_known(), env_id: result}
    PATH.parent.mkdir(parents=True, exist_ok=True)
    atomic.replace(PATH, json.dumps(content, indent=2) + "\n")
    return PATH


def recall(env_id: str) -> Result | None:
    """Return the result of the last self-check in this environment, None if there was none."""
    result = _known().get(env_id)
    return result if isinstance(result, dict) else None


def _known() -> dict[str, Any]:
    """Return what the file holds; nothing if it can't be read, because a check can be repeated."""
    try:
        content = json.loads(PATH.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def detectable(environment: Environment | None) -> Detectable | None:
    """Return what the self-check of an environment says, None if there is none or it can't be understood."""
    try:
        return _read(environment.state[SELFCHECK]) if environment else None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        # runs can be compared without it
        return None


def _read(result: Any) -> Detectable | None:
    shares = {int(threads): float(share) for threads, share in result["detectable"].items() if share is not None}
    known = {threads: share for threads, share in shares.items() if math.isfinite(share) and share > 0}
    alarms, rows = (int(result.get(name) or 0) for name in ("false_alarms", "rows"))
    return Detectable(known, int(result["processes"]), alarms, rows) if known else None
