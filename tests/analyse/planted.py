"""Rows whose laws are known: latencies as planted, with log-normal noise over processes, as the store makes rows."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bench.analyse.scaling.series import Row
from bench.stats.replicates import Estimate, latency, ratio
from tests.examples import case

DRAWS, HELD = 100, 90
"""Intervals of 95 % are drawn so often, and must hold the truth so often."""

Law = Callable[[int], float]
"""From the place on an axis to seconds."""


def row(name: str, latencies_s: Sequence[float], baseline_s: Sequence[float] = (), **columns: Any) -> Row:
    """Return the row of an implementation from a latency for each process, and those of the baseline beside them."""
    peak_bytes = columns.pop("peak_bytes", None)
    point = case(name, **columns).columns()
    times = latency(latencies_s)
    logs = [math.log(base / own) for own, base in zip(latencies_s, baseline_s, strict=bool(baseline_s))]
    speedup = ratio(logs) if logs else Estimate(*[math.nan] * 4)
    measured = {
        "latency_s": times.value,
        "latency_low_s": times.low,
        "latency_high_s": times.high,
        "speedup": speedup.value,
        "speedup_low": speedup.low,
        "speedup_high": speedup.high,
        "log_ratio_sd": speedup.sd,
    }
    known = {name: None if math.isnan(value) else value for name, value in measured.items()}
    return {**point, "status": "ok", "processes": len(latencies_s), "memory_bytes": peak_bytes, **known}


def exact(name: str, law: Law, places: Sequence[int], column: str = "num_tokens", **columns: Any) -> list[Row]:
    """Return rows of one process that follow a law without noise."""
    return [row(name, [law(place)], **{**columns, column: place}) for place in places]


def drawn(
    rng: np.random.Generator,
    laws: Mapping[str, Law],
    places: Sequence[int],
    *,
    processes: int,
    sd: float | Sequence[float] = 0.03,
    drift: float = 0.0,
    column: str = "num_tokens",
) -> list[Row]:
    """Return rows whose processes scatter about their laws by `sd`; the first implementation is the baseline.

    `sd` is that of all places or one for each. All implementations share a process's `drift`.
    """
    rows = []
    for place, scatter in zip(places, np.broadcast_to(sd, len(places)), strict=True):
        shared = rng.normal(0, drift, processes)
        times = {name: law(place) * np.exp(shared + rng.normal(0, scatter, processes)) for name, law in laws.items()}
        base = next(iter(times.values())).tolist()
        rows += [row(name, values.tolist(), base, **{column: place}) for name, values in times.items()]
    return rows


def draws(seed: int) -> Iterator[np.random.Generator]:
    """Yield a source of chance for each draw, the same ones at every call."""
    yield from np.random.default_rng(seed).spawn(DRAWS)
