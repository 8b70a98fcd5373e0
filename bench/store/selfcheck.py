"""What self-checks found on this machine, by the name of its environment: later runs carry it in their state."""

import json
from pathlib import Path
from typing import Any

from bench.store import atomic

PATH = Path(__file__).parents[2] / "results" / "selfcheck.json"
"""Beside the runs of this machine, and like them not part of the project."""

Found = dict[str, Any]
"""`detectable` (the smallest change, as a share, by the number of threads), `false_alarms`, `rows`, `processes`."""


def remember(env_id: str, found: Found) -> Path:
    """Keep what a self-check found, in place of what an earlier one found in the same environment."""
    content = {**_known(), env_id: found}
    PATH.parent.mkdir(parents=True, exist_ok=True)
    atomic.replace(PATH, json.dumps(content, indent=2) + "\n")
    return PATH


def recall(env_id: str) -> Found | None:
    """Return what the last self-check in this environment found, None where there was none."""
    found = _known().get(env_id)
    return found if isinstance(found, dict) else None


def _known() -> dict[str, Any]:
    """Return what is remembered; a file that can't be read is as good as none, because a check can be repeated."""
    try:
        content = json.loads(PATH.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
