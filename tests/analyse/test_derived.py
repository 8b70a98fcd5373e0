"""Figures that follow from a row and those beside it."""

import math
from typing import Any

import pytest

from bench.analyse.derived import calls_until_paid, launch_bound


def row(
    implementation: str, latency_s: float | None, speedup: float | None = None, width: float = 0.002, **columns: Any
) -> dict[str, Any]:
    """Return the columns of a row that are read here; the intervals are so wide to either side."""
    return {
        "implementation": implementation,
        "status": "ok" if latency_s is not None else "error",
        "compile_cold_s": None,
        "host_s": None,
        **_interval("latency", latency_s, width, "_s"),
        **_interval("speedup", speedup, width),
        "log_ratio_freedom": 20.0,
        **columns,
    }


def _interval(name: str, value: float | None, width: float, unit: str = "") -> dict[str, float | None]:
    ends = {"": 1.0, "_low": 1 - width, "_high": 1 + width}
    return {f"{name}{end}{unit}": value and value * factor for end, factor in ends.items()}


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
    """A speed-up of 1.01 [0.96, 1.06] says neither after how many calls nor never; nor does a row without a rival."""
    compiled = row("compiled_eager", 10e-3, speedup, 0.05, compile_cold_s=3.0)
    eager = row("eager", 10e-3, 1.0, width=0.0)
    assert calls_until_paid(compiled, [eager, compiled], "eager") is None
    alone = row("compiled_eager", 8e-3, compile_cold_s=3.0, latency_low_s=None, latency_high_s=None)
    assert calls_until_paid(alone, [row("eager", 10e-3), alone], "eager") is None
    assert calls_until_paid(row("flex", 9e-3, compile_cold_s=1.0), [], None) is None
