"""Profiles in the terminal."""

import dataclasses
import re

import pytest

from bench.analyse.profile import HEAVY
from bench.analyse.profile_difference import difference
from bench.show.terminal.console import render, rendered
from bench.show.terminal.profile import blocks, difference_blocks, headline, row_of
from bench.store.profile import KERNEL, OPERATOR, Operator, Profile, Span
from tests import profiles
from tests.profiles import MIB, profile, stepwise
from tests.show import example_results as made

PRODUCT = Operator("aten::mm", 2, 8e-3, 7 * MIB)
COPY = Operator("aten::copy_", 1, 0.2e-3, int(2.25 * MIB))


def lines(profile: Profile, top: int = 10) -> list[str]:
    """Return what is said of a profile that its run has no row of."""
    return rendered(render(blocks(profile, None, top))).splitlines()


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
    assert rendered(render(blocks(here, row))).splitlines()[1].endswith(" in the run")
    assert "in the run, on another machine or software" in rendered(render(blocks(elsewhere, row)))
    assert row_of(table, profiles.profile("eager").case) is None


@pytest.mark.parametrize(("factor", "said"), [(3.02, "3 times"), (0.5, "0.5 times"), (1.1, ""), (0.9, "")])
def test_a_latency_unlike_that_of_the_run_is_said_with_a_reason(factor: float, said: str) -> None:
    """Calls without the profiler that take three times as long as in the run, or half as long: a warning says so."""
    profile = dataclasses.replace(profiles.profile(), origin=made.ORIGIN)
    row = row_of(made.results([profile.case]), profile.case)
    assert row is not None
    slower = dataclasses.replace(profile, timed_s=factor * row["latency_s"], profiled_s=factor * row["latency_s"])
    text = " ".join(rendered(render(blocks(slower, row))).split())
    assert (said in text) if said else "times as long" not in text
    assert ("another speed" in text) is bool(said)
    elsewhere = dataclasses.replace(slower, origin=dataclasses.replace(made.ORIGIN, env_id="another"))
    assert "times as long" not in rendered(render(blocks(elsewhere, row)))


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


def of(*operators: Operator, implementation: str = "eager") -> Profile:
    """Return a profile of these operators."""
    return profile(implementation, operators=operators)


def shown(a: Profile, b: Profile, top: int = 12) -> list[str]:
    """Return the lines of a difference."""
    return rendered(render(difference_blocks(a, b, top))).splitlines()


def test_where_it_was_called_is_said() -> None:
    """With what its caller allocates more where the operator itself allocates nothing."""
    clone, empty = Operator("aten::clone", 1, 1e-6, 0), Operator("aten::empty", 1, 1e-6, int(2.25 * MIB))
    copy = dataclasses.replace(COPY, allocated_bytes=0)
    after = dataclasses.replace(
        of(PRODUCT, clone, empty, copy),
        spans=(
            Span("aten::clone", OPERATOR, "host", 0, 0.0, 1e-3),
            Span("aten::empty", OPERATOR, "host", 1, 0.1e-3, 1e-6),
            Span("aten::copy_", OPERATOR, "host", 1, 0.2e-3, 0.2e-3),
        ),
    )
    (line,) = headline(difference(of(PRODUCT), after))
    assert line == "What costs most: aten::copy_ appeared: 1 call, +200 µs, in aten::clone with +2.25 MiB."


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((), (COPY,), "aten::copy_ appeared: 1 call, +200 µs, +2.25 MiB."),
        ((COPY,), (dataclasses.replace(COPY, calls=2, self_s=0.5e-3),), "aten::copy_ grew from 1 to 2 calls, +300 µs."),
        ((COPY,), (dataclasses.replace(COPY, allocated_bytes=0),), "aten::copy_ shrank by bytes in 1 call, -2.25 MiB."),
        ((), (dataclasses.replace(PRODUCT, calls=1),), "aten::mm shrank from 2 to 1 calls."),
    ],
)
def test_a_change_is_said_in_plain_words(
    before: tuple[Operator, ...], after: tuple[Operator, ...], expected: str
) -> None:
    """What it costs, and nothing of what didn't change."""
    rest = () if after[0].name == PRODUCT.name else (PRODUCT,)
    (line,) = headline(difference(of(*(before or (PRODUCT,)), *rest[: len(before)]), of(*rest, *after)))
    assert line == f"What costs most: {expected}"


def test_a_larger_change_of_a_time_alone_comes_second() -> None:
    """A time of one profile may be chance, a further call isn't."""
    slow = dataclasses.replace(PRODUCT, self_s=12e-3)
    certain, uncertain = headline(difference(of(PRODUCT), of(slow, COPY)))
    assert certain.startswith("What costs most: aten::copy_ appeared")
    assert uncertain == "More, but by its time alone: aten::mm grew by time in 2 calls, +4.00 ms."
    (alone,) = headline(difference(of(PRODUCT), of(slow)))
    assert alone == "What costs most, by its time alone: aten::mm grew by time in 2 calls, +4.00 ms."


def test_a_row_says_what_became_of_an_operator_on_both_sides() -> None:
    """Largest change first, what stayed in one row, and all together at the end."""
    lines = shown(of(PRODUCT, Operator("aten::add", 1, 1e-3, 0)), of(PRODUCT, COPY, implementation="sdpa"))
    start = next(number for number, line in enumerate(lines) if line.startswith("operator"))
    assert [" ".join(line.split()) for line in lines[start + 1 : start + 5]] == [
        "aten::add vanished 1 → 0 1.00 ms → 0 -1.00 ms",
        "aten::copy_ appeared 0 → 1 0 → 200 µs +200 µs 0 → 2.25 MiB +2.25 MiB",
        "unchanged 2 8.00 ms 7.00 MiB",
        "all 3 9.00 ms → 8.20 ms -800 µs 7.00 MiB → 9.25 MiB +2.25 MiB",
    ]


def test_small_changes_beyond_the_top_are_counted_together() -> None:
    """With their sums, so that the rows still make the whole."""
    extra = [Operator(f"aten::op{number}", 1, 1e-4 * (number + 1), 0) for number in range(5)]
    lines = shown(of(PRODUCT), of(PRODUCT, *extra), top=2)
    assert [line.split()[0] for line in lines if line.startswith("aten::")] == ["aten::op4", "aten::op3"]
    (rest,) = [line for line in lines if line.startswith("3 smaller changes")]
    assert "+600 µs" in rest


def test_both_sides_are_named_with_what_they_share() -> None:
    """And what differs beside the implementation: a column of the point, the machine."""
    a, b = of(PRODUCT), profile("sdpa", operators=(PRODUCT,), num_tokens=577)
    newer = dataclasses.replace(b, origin=dataclasses.replace(b.origin, torch_version="2.14.0"))
    lines = shown(a, newer)
    assert lines[0] == "vit · float32 · inference · B=8 · C=384 · H=6 · 1 thread"
    assert lines[1] == "A: eager N=197, 8.00 ms a call, 8.16 ms under the profiler"
    assert lines[2] == "B: sdpa N=577, 8.00 ms a call, 8.16 ms under the profiler"
    assert lines[3] == "from A to B: torch 2.13.0 → torch 2.14.0"


def test_kernels_have_a_table_of_their_own() -> None:
    """Only where there are any; and where nothing changed there is no row."""
    with_one = dataclasses.replace(of(PRODUCT), spans=(Span("gemm", KERNEL, "stream 7", 0, 0.0, 1e-3),))
    assert any(line.startswith("GPU kernel") for line in shown(of(PRODUCT), with_one))
    lines = shown(stepwise(), stepwise())
    assert "Nothing appeared, vanished, grew or shrank." in lines
    assert not [line for line in lines if line.startswith(("aten::", "GPU kernel"))]
