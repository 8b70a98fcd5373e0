"""Tables of results whose ratios are drawn or chosen, for tests that compare them."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from bench.plan.case import Case
from bench.store.table import COLUMNS, SCHEMA_VERSION, typed
from tests.examples import case

Row = dict[str, Any]


def row(of: Case, logs: Sequence[float] = (), **changes: Any) -> Row:
    """Return the row of a case with one logarithm of its speed-up per process."""
    known: Row = {"status": "ok", "latency_s": 0.02, "processes": len(logs), "env_id": "here", "baseline": "eager"}
    known["schema_version"] = SCHEMA_VERSION
    if len(logs):
        known["speedup"] = float(np.exp(np.mean(logs)))
    if len(logs) > 1:
        known["log_ratio_sd"] = float(np.std(logs, ddof=1))
    return {**dict.fromkeys(COLUMNS), **of.columns(), **known, **changes}


def at(of: Case, speedup: float, **changes: Any) -> Row:
    """Return a row of three processes that agree about a speed-up within a tenth of a percent."""
    return {**row(of, (-0.001, 0.0, 0.001), **changes), "speedup": speedup}


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
    """Return so many cases that differ in their tokens."""
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
    mean: float = 0.3,
    sd: float | Sequence[float] = 0.005,
    processes: int = 10,
) -> pd.DataFrame:
    """Return a table of these cases, measured in processes that scatter about the logarithm `mean`.

    `sd` is that of all rows, or one for each.
    """
    rows = _unmeasured(tuple(of))
    logs = rng.normal(mean, np.reshape(sd, (-1, 1)), (len(rows), processes))
    return rows.assign(
        processes=pd.array([processes] * len(rows), dtype="Int64"),
        speedup=pd.array(np.exp(logs.mean(axis=1)), dtype="Float64"),
        log_ratio_sd=pd.array(logs.std(axis=1, ddof=1), dtype="Float64"),
    )


@cache
def _unmeasured(of: tuple[Case, ...]) -> pd.DataFrame:
    return table(*(row(one) for one in of))
