"""What makes a row less certain than it looks."""

import math
from typing import Any

import pytest

from bench.analyse.flags import calls_until_paid, flags, is_opposed, legend

SURE: dict[str, Any] = {
    "implementation": "sdpa", "device": "cpu", "timing": "host",
    "latency_s": 0.1, "latency_low_s": 0.099, "latency_high_s": 0.101, "speedup_low": 1.19, "speedup_high": 1.21,
    "flagged_share": 0.0, "host_s": None, "throttle": None, "threads": 2,
}  # fmt: skip


def letters(**changes: object) -> str:
    """Return the letters of a row that is sure but for these changes."""
    return "".join(flag.letter for flag in flags({**SURE, **changes}))


@pytest.mark.parametrize(
    ("changes", "letter"),
    [
        ({"flagged_share": 0.5}, "D"),
        ({"host_s": 0.095}, "L"),
        ({"throttle": "software power cap"}, "T"),
        ({"latency_low_s": None, "slowdown_high": None}, "1"),
        ({"implementation": "sageattention"}, "A"),
        ({"implementation": "flash_attn_3[dtype=float8_e4m3]"}, "A"),
        ({"implementation": "flash_attn_3"}, ""),
        ({"flagged_share": 0.05}, ""),
        ({"flagged_share": None}, ""),
        ({"host_s": 0.08}, ""),
        ({"latency_low_s": None, "slowdown_high": 1.3}, ""),
        ({}, ""),
    ],
)
def test_each_doubt_has_a_letter(changes: dict[str, object], letter: str) -> None:
    """Neighbours, launches, the clock, one process and another accuracy have one; a few samples have none."""
    assert letters(**changes) == letter


def test_the_legend_explains_each_letter_once() -> None:
    """However many rows share a flag; fewer threads are advised only if there are two, and if that helps all rows."""
    throttled = {**SURE, "throttle": "software power cap"}
    disturbed = {**throttled, "flagged_share": 1.0}
    assert [flag.letter for flag in legend([*flags(throttled), *flags(disturbed)])] == ["D", "T"]
    one, two = (flags({**SURE, "flagged_share": 0.5, "threads": threads}) for threads in (1, 2))
    assert ["fewer threads" in flag.meaning for flag in (*one, *two)] == [False, True]
    assert legend([*one, *two]) == one
    (of_gpu,) = flags({**SURE, "device": "cuda:1", "flagged_share": 0.5})
    assert "threads" not in of_gpu.meaning


def row(
    implementation: str, latency_s: float | None, speedup: float | None = None, width: float = 0.002, **columns: Any
) -> dict[str, Any]:
    """Return the columns of a row that are read here; the intervals are so wide to either side.

    The fastest takes 8 ms; a speed-up is over one of 10 ms.
    """
    slowdown = (10e-3 / speedup if speedup else latency_s or math.nan) / 8e-3
    return {
        "implementation": implementation,
        "device": "cpu",
        "timing": "host",
        "status": "ok" if latency_s is not None else "error",
        "compile_cold_s": None,
        "baseline": "eager",
        "slowdown": slowdown,
        "slowdown_low": max(1.0, slowdown * (1 - width)),
        "slowdown_high": slowdown * (1 + width),
        "log_time_error": width / 5,
        **_interval("latency", latency_s, width, "_s"),
        **_interval("speedup", speedup, width),
        "log_ratio_freedom": 20.0,
        **columns,
    }


def _interval(name: str, value: float | None, width: float, unit: str = "") -> dict[str, float | None]:
    ends = {"": 1.0, "_low": 1 - width, "_high": 1 + width}
    return {f"{name}{end}{unit}": value and value * factor for end, factor in ends.items()}


@pytest.mark.parametrize(
    ("compiled", "others", "calls"),
    [
        (row("compiled_sdpa", 8e-3, compile_cold_s=3.0), [row("eager", 0.1), row("sdpa", 10e-3)], 1500),
        (row("compiled_eager", 12e-3, compile_cold_s=3.0, speedup=1.25), [row("eager", 10e-3, speedup=1.0)], 1500),
        (row("flex", 9e-3, 10 / 9, compile_cold_s=1.0), [row("eager", 10e-3)], 1000),
        (row("compiled_sdpa", 9e-3, 10 / 9, compile_cold_s=1.0), [row("eager", 10e-3), row("sdpa", None)], 1000),
        (row("compiled_eager", 11e-3, 10 / 11, compile_cold_s=3.0), [row("eager", 10e-3)], math.inf),
        (
            row("compiled_sdpa", 10.4e-3, compile_cold_s=3.0, slowdown_low=1.0),
            [row("eager", 10e-3), row("sdpa", 10e-3)],
            None,
        ),
        (row("sdpa", 9e-3), [row("eager", 10e-3)], None),
    ],
    ids=["twin", "paired ratios", "baseline", "failed twin", "slower", "may be the fastest", "not compiled"],
)
def test_compiling_pays_against_the_same_implementation_uncompiled(
    compiled: dict[str, Any], others: list[dict[str, Any]], calls: float | None
) -> None:
    """3 s of compiling and 2 ms gained a call are 1500 calls, by the paired ratios where latencies drifted.

    Without its twin it pays against the baseline; what is slower never pays.
    """
    paid = calls_until_paid(compiled, [*others, compiled], "eager")
    assert paid == (calls and pytest.approx(calls, abs=1))


@pytest.mark.parametrize(
    ("latency_s", "speedup", "width", "opposed"),
    [(11e-3, 1.1, 0.02, True), (9e-3, 0.9, 0.02, True), (9e-3, 1.1, 0.02, False), (11e-3, 1.1, 0.2, False)],
)
def test_a_median_may_say_the_opposite_of_a_ratio(
    latency_s: float, speedup: float, width: float, opposed: bool
) -> None:
    """Only if the ratio shows something."""
    base, other = row("eager", 10e-3, 1.0, width=0.0), row("sdpa", latency_s, speedup, width)
    assert is_opposed(other, base) is opposed
    assert not is_opposed(base, base)


@pytest.mark.parametrize(
    ("latency_s", "speedup", "opposed"), [(19.2e-6, 0.72, True), (19.2e-6, 0.92, False), (16e-6, 1.3, True)]
)
def test_medians_may_contradict_a_ratio_of_one_process(latency_s: float, speedup: float, opposed: bool) -> None:
    """It shows nothing, but 1.38 times as long beside 17.7 and 19.2 µs needs its reason, in whichever direction."""
    base, other = row("eager", 17.7e-6, 1.0, math.nan), row("sdpa", latency_s, speedup, math.nan)
    alone = [{**each, "speedup_low": None, "speedup_high": None} for each in (other, base)]
    assert is_opposed(alone[0], alone[1]) is opposed
    assert not is_opposed(alone[1], alone[1])


@pytest.mark.parametrize("speedup", [1.01, 0.99])
def test_a_gain_that_is_not_shown_has_no_number(speedup: float) -> None:
    """A speed-up of 1.01 [0.96, 1.06] says neither after how many calls nor never; nor does a row without a rival."""
    compiled = row("compiled_eager", 10e-3, speedup, 0.05, compile_cold_s=3.0)
    eager = row("eager", 10e-3, 1.0, width=0.0)
    assert calls_until_paid(compiled, [eager, compiled], "eager") is None
    alone = row("compiled_eager", 8e-3, compile_cold_s=3.0)
    assert calls_until_paid(alone, [row("eager", 10e-3), alone], "eager") is None
    assert calls_until_paid(row("flex", 9e-3, compile_cold_s=1.0), [], None) is None
