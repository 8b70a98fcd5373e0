"""Rows whose laws are known: latencies as planted, with log-normal noise over processes, as the store makes rows."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bench.analyse.series import Row
from bench.stats.contrasts import Common, common
from bench.stats.estimates import MEDIAN_EFFICIENCY, Array, Estimates, half_widths, ratios
from tests.examples import case

DRAWS, HELD = 100, 90
"""Intervals of 95 % are drawn so often, and must hold the truth so often."""

MEASURED = (
    "latency_s", "latency_low_s", "latency_high_s",
    "speedup", "speedup_low", "speedup_high", "log_ratio_error", "log_ratio_freedom",
)  # fmt: skip

Lent = tuple[Common, Common]

ALONE = (Common(1.0, 0.0, math.inf),) * 2
"""Nothing is lent: the processes of a row tell its scatter."""

Law = Callable[[int], float]
"""From the place on an axis to seconds."""


def row(
    name: str, latencies_s: Sequence[float], baseline_s: Sequence[float] = (), *, lent: Lent = ALONE, **columns: Any
) -> Row:
    """Return the row of an implementation from a latency for each process, and those of the baseline beside them.

    `lent` are the variances that a run has in common, of latencies and of ratios.
    """
    peak_bytes = columns.pop("peak_bytes", None)
    logs, base = np.log(latencies_s), np.log(baseline_s)
    level, of = _mean(logs, lent[0]), _mean(base - logs if base.size else logs * math.nan, lent[1])
    half = half_widths(level) * (MEDIAN_EFFICIENCY if len(logs) > 2 else 1.0)
    latency_s = float(np.median(latencies_s))
    speedup = (*ratios(of), of.error, of.freedom)
    values = dict(zip(MEASURED, (latency_s, *(latency_s * np.exp([-half, half])), *speedup), strict=True))
    numbers = {name: None if math.isnan(value) else float(value) for name, value in values.items()}
    others = {"status": "ok", "processes": len(latencies_s), "memory_bytes": peak_bytes}
    return {**case(name, **columns).columns(), **others, **numbers}


def _mean(logs: Array, lent: Common) -> Estimates:
    """Return the mean over processes; what doesn't scatter at all is the baseline over itself."""
    scatters = len(logs) > 1 and np.ptp(logs) > 0
    variance, freedom = (lent if scatters else ALONE[0]).moderate(
        np.asarray(np.var(logs, ddof=1) if len(logs) > 1 else math.nan), np.asarray(len(logs) - 1.0)
    )
    error = np.sqrt(variance / len(logs))
    return Estimates(np.asarray(np.mean(logs)), error, np.where(freedom > 0, freedom, math.nan))


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
    times_of: list[tuple[str, int, Array, Array]] = []
    for place, scatter in zip(places, np.broadcast_to(sd, len(places)), strict=True):
        shared = rng.normal(0, drift, processes)
        times = {name: law(place) * np.exp(shared + rng.normal(0, scatter, processes)) for name, law in laws.items()}
        base = next(iter(times.values()))
        times_of += [(name, place, values, base) for name, values in times.items()]
    lent = (
        _common([np.log(own) for *_, own, _ in times_of]),
        _common([np.log(base / own) for *_, own, base in times_of]),
    )
    return [row(name, own.tolist(), base.tolist(), lent=lent, **{column: place}) for name, place, own, base in times_of]


def _common(logs: Sequence[Array]) -> Common:
    variances = np.array([np.var(own, ddof=1) for own in logs])
    return common(variances, (variances > 0) * np.array([len(own) - 1.0 for own in logs]))


def draws(seed: int) -> Iterator[np.random.Generator]:
    """Yield a source of chance for each draw, the same ones at every call."""
    yield from np.random.default_rng(seed).spawn(DRAWS)
