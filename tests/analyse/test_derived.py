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


@pytest.mark.parametrize(("host_s", "bound"), [(1e-5, False), (8e-5, False), (9.5e-5, True), (2e-4, True)])
def test_a_layer_is_launch_bound_where_the_host_needs_as_long_as_the_device(host_s: float, bound: bool) -> None:
    """A call of 100 µs on the device that costs the host 95 µs is launch-bound, one that costs 10 µs isn't."""
    assert launch_bound(row("sdpa", 1e-4, host_s=host_s)) is bound


def test_without_a_host_time_nothing_is_said_of_launches() -> None:
    """On a CPU there is nothing to launch."""
    assert launch_bound(row("sdpa", 1e-4)) is None


def test_compiling_pays_against_the_same_implementation_uncompiled() -> None:
    """3 s of compiling and 2 ms gained a call against sdpa are 1500 calls, whatever eager takes."""
    compiled = row("compiled_sdpa", 8e-3, compile_cold_s=3.0)
    others = [row("eager", 0.1), row("sdpa", 10e-3), compiled]
    assert calls_until_paid(compiled, others, "eager") == pytest.approx(1500, abs=1)


def test_the_gain_is_that_of_the_paired_ratios() -> None:
    """Latencies that drifted say otherwise: by the ratios, 10 ms against 8 ms a call, 3 s pay after 1500 calls."""
    compiled = row("compiled_eager", 12e-3, compile_cold_s=3.0, speedup=1.25)
    assert calls_until_paid(compiled, [row("eager", 10e-3, speedup=1.0), compiled], "eager") == pytest.approx(
        1500, abs=1
    )


def test_without_its_twin_it_pays_against_the_baseline() -> None:
    """Flex has no uncompiled twin in the table; a twin that failed is none."""
    flex = row("flex", 9e-3, compile_cold_s=1.0)
    assert calls_until_paid(flex, [row("eager", 10e-3), flex], "eager") == pytest.approx(1000, abs=1)
    compiled = row("compiled_sdpa", 9e-3, compile_cold_s=1.0)
    assert calls_until_paid(compiled, [row("eager", 10e-3), row("sdpa", None)], "eager") == pytest.approx(1000, abs=1)


def test_what_is_slower_never_pays() -> None:
    """Shown to be slower than its twin: no number of calls is enough."""
    compiled = row("compiled_eager", 11e-3, compile_cold_s=3.0)
    assert calls_until_paid(compiled, [row("eager", 10e-3)], "eager") == math.inf


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
    found = calls_until_paid(compiled, [row("eager", 10e-3, speedup=1.0), sdpa, compiled], "eager")
    assert found == (calls and pytest.approx(calls, abs=1))


def test_what_is_not_compiled_has_nothing_to_pay() -> None:
    """No compile time, no number; and nothing beside it to compare with, none either."""
    assert calls_until_paid(row("sdpa", 9e-3), [row("eager", 10e-3)], "eager") is None
    assert calls_until_paid(row("flex", 9e-3, compile_cold_s=1.0), [], None) is None
