"""Figures that follow from a row and those beside it."""

import math
from typing import Any

import pytest

from bench.analyse.derived import calls_until_paid, launch_bound


def row(implementation: str, latency_s: float | None, **columns: Any) -> dict[str, Any]:
    """Return the columns of a row that are read here; three processes that scatter by a thousandth."""
    status = "ok" if latency_s is not None else "error"
    return {
        "implementation": implementation,
        "status": status,
        "latency_s": latency_s,
        "latency_low_s": latency_s and latency_s * 0.998,
        "latency_high_s": latency_s and latency_s * 1.002,
        "processes": 3,
        "compile_cold_s": None,
        "host_s": None,
        "speedup": None,
        "log_ratio_sd": 0.001,
        **columns,
    }


@pytest.mark.parametrize(
    ("host_s", "bound"), [(1e-5, False), (8e-5, False), (9.5e-5, True), (2e-4, True), (None, None)]
)
def test_a_layer_is_launch_bound_where_the_host_needs_as_long_as_the_device(
    host_s: float | None, bound: bool | None
) -> None:
    """A call of 100 µs that costs the host 95 µs is launch-bound, of 10 µs it isn't; a CPU launches nothing."""
    assert launch_bound(row("sdpa", 1e-4, host_s=host_s)) is bound


@pytest.mark.parametrize(
    ("compiled", "others", "calls"),
    [
        (row("compiled_sdpa", 8e-3, compile_cold_s=3.0), [row("eager", 0.1), row("sdpa", 10e-3)], 1500),
        (row("compiled_eager", 12e-3, compile_cold_s=3.0, speedup=1.25), [row("eager", 10e-3, speedup=1.0)], 1500),
        (row("flex", 9e-3, compile_cold_s=1.0), [row("eager", 10e-3)], 1000),
        (row("compiled_sdpa", 9e-3, compile_cold_s=1.0), [row("eager", 10e-3), row("sdpa", None)], 1000),
        (row("compiled_eager", 11e-3, compile_cold_s=3.0), [row("eager", 10e-3)], math.inf),
        (row("sdpa", 9e-3), [row("eager", 10e-3)], None),
    ],
    ids=["twin", "paired ratios", "baseline", "failed twin", "slower", "not compiled"],
)
def test_compiling_pays_against_the_same_implementation_uncompiled(
    compiled: dict[str, Any], others: list[dict[str, Any]], calls: float | None
) -> None:
    """3 s of compiling and 2 ms gained a call are 1500 calls, by the paired ratios where latencies drifted.

    Without its twin it pays against the baseline; what is slower never pays.
    """
    paid = calls_until_paid(compiled, [*others, compiled], "eager")
    assert paid == (calls and pytest.approx(calls, abs=1))


@pytest.mark.parametrize("speedup", [1.01, 0.99])
def test_a_gain_that_is_not_shown_has_no_number(speedup: float) -> None:
    """A speed-up of 1.01 [0.96, 1.06] says neither after how many calls nor never."""
    compiled = row("compiled_eager", 10e-3, compile_cold_s=3.0, speedup=speedup, log_ratio_sd=0.02)
    eager = row("eager", 10e-3, speedup=1.0, log_ratio_sd=0.0)
    assert calls_until_paid(compiled, [eager, compiled], "eager") is None
    alone = row("compiled_eager", 8e-3, compile_cold_s=3.0, processes=1, latency_low_s=None, latency_high_s=None)
    assert calls_until_paid(alone, [row("eager", 10e-3), alone], "eager") is None


@pytest.mark.parametrize(
    ("compiled_s", "ranks", "calls"), [(8e-3, (1, 2), 1500), (12.5e-3, (2, 1), math.inf), (8e-3, (2, 3), None)]
)
def test_the_pair_says_whether_a_gain_is_shown(compiled_s: float, ranks: tuple[int, int], calls: float | None) -> None:
    """Both speed-ups over eager scatter by 20 %, the ratio of the two by little: if one leads, the table has it."""
    noisy, behind = {"log_ratio_sd": 0.2}, {"relative": 1.25, "relative_low": 1.2, "relative_high": 1.3}
    leads = [{} if rank == 1 else behind for rank in ranks]
    speedup = 10e-3 / compiled_s
    compiled = row("compiled_sdpa", compiled_s, compile_cold_s=3.0, speedup=speedup, rank=ranks[0], **noisy, **leads[0])
    sdpa = row("sdpa", 10e-3, speedup=1.0, rank=ranks[1], **noisy, **leads[1])
    paid = calls_until_paid(compiled, [row("eager", 10e-3, speedup=1.0), sdpa, compiled], "eager")
    assert paid == (calls and pytest.approx(calls, abs=1))
    assert calls_until_paid(row("flex", 9e-3, compile_cold_s=1.0), [], None) is None
