"""The results of self-checks on this machine, by the name of its environment: later runs have them in their state."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.store import files
from bench.store.environment import Environment

PATH = Path(__file__).parents[2] / "results" / "selfcheck.json"
"""The file lies beside the runs of this machine and, like them, is not part of the project."""

SELFCHECK = "selfcheck"

Result = dict[str, Any]
"""`detectable` (the smallest change, as a share, by the number of threads), `processes`, and `between` (what runs
differ by beyond their processes: standard deviation and degrees of freedom, by threads)."""


@dataclass(frozen=True)
class Detectable:
    """The smallest change that a machine detects, as a share, by the number of threads, with `processes` a side."""

    share: dict[int, float]
    processes: int


def remember(env_id: str, result: Result) -> Path:
    """Keep the result of a self-check in place of an earlier one of the same environment; return the file."""
    files.replace_json(PATH, {**files.read_objects(PATH), env_id: result})
    return PATH


def recall(env_id: str) -> Result | None:
    """Return the result of the last self-check in this environment, None if there was none."""
    return files.read_objects(PATH).get(env_id)


def detectable(environment: Environment | None) -> Detectable | None:
    """Return what the self-check of an environment found, None if there is none or it can't be read."""
    try:
        return _read(environment.state[SELFCHECK]) if environment else None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):  # runs can be compared without it
        return None


def between(environment: Environment | None) -> dict[int, tuple[float, float]]:
    """Return by the number of threads what runs differ by beyond their processes: standard deviation and freedom.

    Empty if there is no self-check, if it is older than this figure, or if it can't be read.
    """
    try:
        known = environment.state[SELFCHECK]["between"] if environment else {}
        pairs = {int(threads): (float(sd), float(freedom)) for threads, (sd, freedom) in known.items()}
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return {}
    return {threads: pair for threads, pair in pairs.items() if math.isfinite(pair[0]) and pair[0] >= 0 < pair[1]}


def _read(result: Any) -> Detectable | None:
    shares = {int(threads): float(share) for threads, share in result["detectable"].items() if share is not None}
    known = {threads: share for threads, share in shares.items() if math.isfinite(share) and share > 0}
    return Detectable(known, int(result["processes"])) if known else None
