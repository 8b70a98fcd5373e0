"""What a machine's self-check found that it can detect, where one stands in the state of an environment."""

import math
from dataclasses import dataclass
from typing import Any

from bench.store.environment import Environment

SELFCHECK = "selfcheck"


@dataclass(frozen=True)
class Detectable:
    """The smallest change that a machine detects with so many threads, as a share, over so many processes.

    So many `false_alarms` were raised over so many `rows` that hadn't changed; 0 rows where that isn't known.
    """

    share: dict[int, float]
    processes: int
    false_alarms: int
    rows: int


def detectable(environment: Environment | None) -> Detectable | None:
    """Return what the self-check of an environment says, None where there is none or it can't be understood."""
    try:
        return _read(environment.state[SELFCHECK]) if environment else None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        # a line that is only quoted must not keep anybody from comparing
        return None


def _read(found: Any) -> Detectable | None:
    shares = {int(threads): float(share) for threads, share in found["detectable"].items() if share is not None}
    known = {threads: share for threads, share in shares.items() if math.isfinite(share) and share > 0}
    alarms, rows = (int(found.get(name) or 0) for name in ("false_alarms", "rows"))
    return Detectable(known, int(found["processes"]), alarms, rows) if known else None
