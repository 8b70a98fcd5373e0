"""Profiles in the terminal."""

import dataclasses
import re

import pytest

from bench.analyse.profile import HEAVY
from bench.show.terminal.console import rendered
from bench.show.terminal.profile import render, row_of
from bench.store.profile import Operator, Profile
from tests import profiles
from tests.show import example_results as made


def lines(profile: Profile, top: int = 10) -> list[str]:
    """Return what is said of a profile that its run has no row of."""
    return rendered(render(profile, None, top)).splitlines()


def test_operators_stand_with_their_shares_rates_and_what_is_left() -> None:
    """By hand: of 8 ms one operator takes three quarters, at 2 TFLOP/s; 1 ms of the call is in none."""
    operators = (
        Operator("aten::mm", 2, 6e-3, 3 << 20, flops=12e9),
        Operator("aten::exp", 1, 2e-3, 0),
    )
    profile = dataclasses.replace(profiles.profile(operators=operators), timed_s=8e-3, profiled_s=9e-3)
    said = [re.split(r"\s{2,}", line.strip()) for line in lines(profile)]
    assert ["aten::mm", "6.00 ms", "75%", "2", "3.00 MiB", "2.00 TFLOP/s"] in said
    assert ["aten::exp", "2.00 ms", "25%", "1", "0 B"] in said
    assert ["in no operator", "1.00 ms"] in said
    assert not any("other" in line for line in lines(profile)[3:5])


def test_what_comes_after_the_top_is_one_line() -> None:
    """Two operators of four remain by name; the others' time, share, calls and bytes are added up."""
    operators = tuple(
        Operator(name, 1, time_s, 1024) for name, time_s in {"a": 5e-3, "b": 3e-3, "c": 1e-3, "d": 1e-3}.items()
    )
    said = [re.split(r"\s{2,}", line.strip()) for line in lines(profiles.profile(operators=operators), top=2)]
    assert ["2 others", "2.00 ms", "20%", "2", "2.00 KiB"] in said
    assert "c" not in {cells[0] for cells in said}


def test_stages_are_set_against_the_whole_layer() -> None:
    """Each has its time and share, and the residual is printed as time and share."""
    profile = profiles.stepwise(residual_s=1e-3)
    said = lines(profile)
    stages = [line.split("  ")[0] for line in said[said.index("") + 1 :]]
    assert [name for name in profiles.STEPS if name in stages] == list(profiles.STEPS)
    whole_s = sum(time_s for _, time_s, _ in profiles.STEPS.values())
    assert said[-1] == f"stages {1e3 * whole_s:.1f} ms of {1e3 * whole_s + 1:.1f} ms; residual 1.00 ms (+8.8%)"
    train = lines(profiles.stepwise(mode="train"))
    assert sum(", backward" in line for line in train) == len(profiles.STEPS)
    assert not any("stage" in line for line in lines(profiles.profile()))


@pytest.mark.parametrize(("share", "noted"), [(HEAVY - 0.01, False), (HEAVY + 0.01, True)])
def test_heavy_overhead_comes_with_advice(share: float, noted: bool) -> None:
    """From 20 % on a line says what can still be trusted; the overhead itself is always said."""
    profile = dataclasses.replace(profiles.profile(), timed_s=1e-3, profiled_s=(1 + share) * 1e-3)
    said = " ".join(lines(profile))
    assert f"under the profiler {1 + share:.2f} ms (+{100 * share:.1f}%)" in said
    assert ("trust counts, bytes and the order of operators" in said) is noted


def test_the_runs_own_latency_stands_beside_it() -> None:
    """With a warning where the profile was taken elsewhere; a case that the run lacks says so."""
    profile = profiles.profile()
    table = made.results([profile.case])
    row = row_of(table, profile.case)
    assert row is not None
    assert "not measured in the run" in " ".join(lines(profile))
    here = dataclasses.replace(profile, origin=made.ORIGIN)
    elsewhere = dataclasses.replace(profile, origin=dataclasses.replace(made.ORIGIN, env_id="another"))
    assert rendered(render(here, row)).splitlines()[1].endswith(" in the run")
    assert "in the run, on another machine or software" in rendered(render(elsewhere, row))
    assert row_of(table, profiles.profile("eager").case) is None


@pytest.mark.parametrize(("factor", "said"), [(3.02, "3 times"), (0.5, "0.5 times"), (1.1, ""), (0.9, "")])
def test_a_latency_unlike_that_of_the_run_is_said_with_a_reason(factor: float, said: str) -> None:
    """Calls without the profiler that take three times as long as in the run, or half as long: a warning says so."""
    profile = dataclasses.replace(profiles.profile(), origin=made.ORIGIN)
    row = row_of(made.results([profile.case]), profile.case)
    assert row is not None
    slower = dataclasses.replace(profile, timed_s=factor * row["latency_s"], profiled_s=factor * row["latency_s"])
    text = " ".join(rendered(render(slower, row)).split())
    assert (said in text) if said else "times as long" not in text
    assert ("another speed" in text) is bool(said)
    elsewhere = dataclasses.replace(slower, origin=dataclasses.replace(made.ORIGIN, env_id="another"))
    assert "times as long" not in rendered(render(elsewhere, row))


def test_on_a_gpu_its_time_stands_beside_the_hosts_and_kernels_are_named() -> None:
    """Shares are of the GPU's time, and every kernel that an operator launched is there."""
    operators = (
        Operator("aten::mm", 1, 1e-5, 0, 3e-3, 6e9, ("gemm_a", "gemm_b")),
        Operator("aten::add", 1, 1e-5, 0, 1e-3),
    )
    said = [re.split(r"\s{2,}", line.strip()) for line in lines(profiles.profile(operators=operators))]
    assert ["aten::mm", "3.00 ms", "75%", "1", "0 B", "2.00 TFLOP/s", "10.0 µs", "gemm_a, gemm_b"] in said
    assert any("GPU time" in cells for cells in said)
    assert not any("in no operator" in cells for cells in said)
