"""Tables of results whose ratios are drawn or chosen, as the store has them."""

import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from bench.plan.case import Case
from bench.stats.estimates import Estimates, half_widths, mean
from bench.store.record import SCHEMA_VERSION
from bench.store.table import COLUMNS, typed
from tests.make.records import case

Row = dict[str, Any]


def row(of: Case, logs: Sequence[float] = (), **changes: Any) -> Row:
    """Return the row of a case with one logarithm of its speed-up per process, which tell the scatter alone."""
    cells: Row = {"status": "ok", "latency_s": 0.02, "processes": len(logs), "env_id": "here", "baseline": "eager"}
    cells["schema_version"] = SCHEMA_VERSION
    if len(logs):
        cells["speedup"] = float(np.exp(np.mean(logs)))
    if len(logs) > 1:
        cells |= {name: float(value) for name, value in _speedup(mean(logs)).items()}
    return {**dict.fromkeys(COLUMNS), **of.columns(), **cells, **changes}


def at(of: Case, speedup: float, **changes: Any) -> Row:
    """Return a row of three processes that agree about a speed-up within a tenth of a percent."""
    return {**row(of, [math.log(speedup) + step for step in (-0.001, 0.0, 0.001)], **changes), "speedup": speedup}


def baseline(processes: int = 5, **point: Any) -> Row:
    """Return the row of the baseline, whose ratio is 1 in each process."""
    return row(case("eager", **point), [0.0] * processes)


def failed(of: Case, status: str = "oom", detail: str = "out of memory") -> Row:
    """Return the row of a case without a measurement."""
    return row(of, status=status, detail=detail, latency_s=None)


def table(*rows: Row) -> pd.DataFrame:
    """Return the rows as the store would give them."""
    return typed(pd.DataFrame(list(rows), columns=list(COLUMNS)))


def cases(number: int, implementation: str = "sdpa") -> list[Case]:
    """Return this many cases that differ in their tokens."""
    return [case(implementation, num_tokens=tokens) for tokens in range(1, number + 1)]


def of_layers(implementation: str = "sdpa") -> list[Case]:
    """Return a case of each layer, and some more that differ from it in an optional column alone."""
    image: dict[str, Any] = {"layer": "patch", "num_heads": 1}
    return [
        case(implementation),
        case(implementation, qk_scale=0.5),
        case(implementation, layer="self", num_heads=1, key_channels=6),
        case(implementation, layer="self", num_heads=1, key_channels=8),
        case(implementation, **image, image_size=224, patch_size=16),
        case(implementation, **image, image_size=224, patch_size=32),
        case(implementation, layer="conv", num_heads=1, image_size=14),
    ]


def drawn(
    rng: np.random.Generator,
    of: Iterable[Case],
    *,
    middle: float = 0.3,
    sd: float | Sequence[float] = 0.005,
    processes: int = 10,
) -> pd.DataFrame:
    """Return a table of these cases, measured in processes that scatter about the logarithm `middle`.

    `sd` is one for all rows, or one for each.
    """
    rows = _unmeasured(tuple(of))
    logs = rng.normal(middle, np.reshape(sd, (-1, 1)), (len(rows), processes))
    error = logs.std(axis=1, ddof=1) / np.sqrt(processes)
    speedups = _speedup(Estimates(logs.mean(axis=1), error, np.full(len(rows), processes - 1.0)))
    return rows.assign(
        processes=pd.array([processes] * len(rows), dtype="Int64"),
        **{name: pd.array(values, dtype="Float64") for name, values in speedups.items()},
    )


def _speedup(logs: Estimates) -> dict[str, Any]:
    """Return the columns of a speed-up whose logarithm is estimated."""
    half = half_widths(logs)
    return {
        "speedup": np.exp(logs.value),
        "speedup_low": np.exp(logs.value - half),
        "speedup_high": np.exp(logs.value + half),
        "log_ratio_error": logs.error,
        "log_ratio_freedom": logs.freedom,
    }


@cache
def _unmeasured(of: tuple[Case, ...]) -> pd.DataFrame:
    return table(*(row(one) for one in of))
