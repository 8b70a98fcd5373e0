"""Profiles in the terminal, alone and two of them."""

import re
from dataclasses import replace

import pytest

from bench.analyse.profile import HEAVY, difference
from bench.show.rows import Row
from bench.show.terminal.console import render, rendered
from bench.show.terminal.profile import blocks, difference_blocks, headline, row_of
from bench.store.profile import KERNEL, OPERATOR, Operator, Profile, Span
from tests.profiles import MIB, STEPS, profile, stepwise
from tests.show.example_results import ORIGIN, results

PRODUCT = Operator("aten::mm", 2, 8e-3, 7 * MIB)
COPY = Operator("aten::copy_", 1, 0.2e-3, int(2.25 * MIB))


def lines(of: Profile, top: int = 10, row: Row | None = None) -> list[str]:
    """Return what is printed of a profile."""
    return rendered(render(blocks(of, row, top))).splitlines()


def cells(*operators: Operator, top: int = 10) -> list[list[str]]:
    """Return the cells of each line that is printed of a call of 8 ms with these operators."""
    of = replace(profile(operators=operators), timed_s=8e-3, profiled_s=9e-3)
    return [re.split(r"\s{2,}", line.strip()) for line in lines(of, top)]


def test_operators_stand_with_their_shares_rates_and_what_is_left() -> None:
    """By hand: of 8 ms one takes three quarters, at 2 TFLOP/s; 1 ms is in none; those after the top are summed up."""
    few = cells(Operator("aten::mm", 2, 6e-3, 3 << 20, flops=12e9), Operator("aten::exp", 1, 1e-3, 0))
    assert ["aten::mm", "6.00 ms", "86%", "2", "3.00 MiB", "2.00 TFLOP/s"] in few
    assert few[-2:] == [["aten::exp", "1.00 ms", "14%", "1", "0 B"], ["in no operator", "2.00 ms"]]
    many = cells(*(Operator(name, 1, 1e-3 * ms, 1024) for name, ms in zip("abcd", (5, 3, 1, 1), strict=True)), top=2)
    assert ["2 others", "2.00 ms", "20%", "2", "2.00 KiB"] in many
    assert not {"c", "d"} & {row[0] for row in many}


def test_on_a_gpu_its_time_stands_beside_the_hosts_and_kernels_are_named() -> None:
    """Shares are of the GPU's time, and every kernel that an operator launched is there."""
    product = Operator("aten::mm", 1, 1e-5, 0, 3e-3, 6e9, ("gemm_a", "gemm_b"))
    printed = cells(product, Operator("aten::add", 1, 1e-5, 0, 1e-3))
    assert ["aten::mm", "3.00 ms", "75%", "1", "0 B", "2.00 TFLOP/s", "10.0 µs", "gemm_a, gemm_b"] in printed
    assert any("GPU time" in row for row in printed)
    assert not any("in no operator" in row for row in printed)


def test_stages_are_set_against_the_whole_layer() -> None:
    """Each has its time and share, and the residual is printed as time and share; other layers have none."""
    printed = lines(stepwise(residual_s=1e-3))
    stages = [line.split("  ")[0] for line in printed[printed.index("") + 1 :]]
    assert [name for name in STEPS if name in stages] == list(STEPS)
    whole_s = sum(time_s for _, time_s, _ in STEPS.values())
    assert printed[-1] == f"stages {1e3 * whole_s:.1f} ms of {1e3 * whole_s + 1:.1f} ms; residual 1.00 ms (+8.8%)"
    assert sum(", backward" in line for line in lines(stepwise(mode="train"))) == len(STEPS)
    assert not any("stage" in line for line in lines(profile()))


@pytest.mark.parametrize(
    ("share", "noted"),
    [
        (HEAVY - 0.01, ""),
        (HEAVY + 0.01, "trust counts, bytes and the order of operators"),
        (0.01 - HEAVY, ""),
        (-0.354, "35% less time with the profiler"),
    ],
)
def test_a_heavy_difference_comes_with_advice(share: float, noted: str) -> None:
    """From 20 % on, either way, a line says what can still be trusted; the difference itself is always said."""
    printed = lines(replace(profile(), timed_s=1e-3, profiled_s=(1 + share) * 1e-3))
    assert f"({100 * share:+.1f}%)" in printed[1]
    assert (noted in printed[2]) if noted else printed[2] == ""


def test_the_runs_own_latency_stands_beside_it() -> None:
    """It is said if the profile was taken elsewhere, or if the run lacks the case."""
    here = replace(profile(), origin=ORIGIN)
    table = results([here.case])
    row = row_of(table, here.case)
    assert row is not None
    assert row_of(table, profile("eager").case) is None
    assert lines(here)[1].endswith("not measured in the run")
    assert lines(here, row=row)[1].endswith(" in the run")
    elsewhere = replace(here, origin=replace(ORIGIN, env_id="another"))
    assert lines(elsewhere, row=row)[1].endswith("in the run, on another machine or software")


@pytest.mark.parametrize(("factor", "words"), [(3.02, "3 times"), (0.5, "0.5 times"), (1.1, ""), (0.9, "")])
def test_a_latency_unlike_that_of_the_run_is_said_with_a_reason(factor: float, words: str) -> None:
    """Calls without the profiler that take three times as long as in the run, or half as long: a warning says so."""
    of = replace(profile(), origin=ORIGIN)
    row = row_of(results([of.case]), of.case)
    assert row is not None
    other = replace(of, timed_s=factor * row["latency_s"], profiled_s=factor * row["latency_s"])
    text = " ".join(lines(other, row=row))
    assert ("times as long" in text) is ("another speed" in text) is bool(words)
    assert words in text
    elsewhere = replace(other, origin=replace(ORIGIN, env_id="another"))
    assert "times as long" not in " ".join(lines(elsewhere, row=row))


# Two profiles


def of(*operators: Operator, implementation: str = "eager") -> Profile:
    """Return a profile of these operators."""
    return profile(implementation, operators=operators)


def shown(a: Profile, b: Profile, top: int = 12) -> list[str]:
    """Return the lines of a difference."""
    return rendered(render(difference_blocks(a, b, top))).splitlines()


def test_where_it_was_called_is_said() -> None:
    """With what its caller allocates more where the operator itself allocates nothing."""
    clone, empty = Operator("aten::clone", 1, 1e-6, 0), Operator("aten::empty", 1, 1e-6, int(2.25 * MIB))
    spans = (
        Span("aten::clone", OPERATOR, "host", 0, 0.0, 1e-3),
        Span("aten::empty", OPERATOR, "host", 1, 0.1e-3, 1e-6),
        Span("aten::copy_", OPERATOR, "host", 1, 0.2e-3, 0.2e-3),
    )
    after = replace(of(PRODUCT, clone, empty, replace(COPY, allocated_bytes=0)), spans=spans)
    (line,) = headline(difference(of(PRODUCT), after))
    assert line == "What costs most: aten::copy_ appeared: 1 call, +200 µs, in aten::clone with +2.25 MiB."


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ((PRODUCT,), (PRODUCT, COPY), "aten::copy_ appeared: 1 call, +200 µs, +2.25 MiB."),
        ((COPY,), (replace(COPY, calls=2, self_s=0.5e-3),), "aten::copy_ grew from 1 to 2 calls, +300 µs."),
        ((COPY,), (replace(COPY, allocated_bytes=0),), "aten::copy_ shrank by bytes in 1 call, -2.25 MiB."),
        ((PRODUCT,), (replace(PRODUCT, calls=1),), "aten::mm shrank from 2 to 1 calls."),
    ],
)
def test_a_change_is_said_in_plain_words(before: tuple[Operator, ...], after: tuple[Operator, ...], words: str) -> None:
    """What it costs, and nothing of what didn't change."""
    assert headline(difference(of(*before), of(*after))) == [f"What costs most: {words}"]


def test_a_larger_change_of_a_time_alone_comes_second() -> None:
    """A time of one profile may be chance, a further call isn't."""
    slow = replace(PRODUCT, self_s=12e-3)
    certain, uncertain = headline(difference(of(PRODUCT), of(slow, COPY)))
    assert certain.startswith("What costs most: aten::copy_ appeared")
    assert uncertain == "More, but by its time alone: aten::mm grew by time in 2 calls, +4.00 ms."
    (alone,) = headline(difference(of(PRODUCT), of(slow)))
    assert alone == "What costs most, by its time alone: aten::mm grew by time in 2 calls, +4.00 ms."


def test_a_row_says_what_became_of_an_operator_on_both_sides() -> None:
    """Largest change first, what stayed in one row, and all together at the end; beyond the top they are summed up."""
    printed = shown(of(PRODUCT, Operator("aten::add", 1, 1e-3, 0)), of(PRODUCT, COPY, implementation="sdpa"))
    start = next(number for number, line in enumerate(printed) if line.startswith("operator"))
    assert [" ".join(line.split()) for line in printed[start + 1 : start + 5]] == [
        "aten::add vanished 1 → 0 1.00 ms → 0 -1.00 ms",
        "aten::copy_ appeared 0 → 1 0 → 200 µs +200 µs 0 → 2.25 MiB +2.25 MiB",
        "unchanged 2 8.00 ms 7.00 MiB",
        "all 3 9.00 ms → 8.20 ms -800 µs 7.00 MiB → 9.25 MiB +2.25 MiB",
    ]
    extra = [Operator(f"aten::op{number}", 1, 1e-4 * (number + 1), 0) for number in range(5)]
    printed = shown(of(PRODUCT), of(PRODUCT, *extra), top=2)
    assert [line.split()[0] for line in printed if line.startswith("aten::")] == ["aten::op4", "aten::op3"]
    (rest,) = (line for line in printed if line.startswith("3 smaller changes"))
    assert "+600 µs" in rest


def test_both_sides_are_named_and_kernels_have_a_table() -> None:
    """And what differs besides; kernels have a table where there are any, and without a change there is no row."""
    b = profile("sdpa", operators=(PRODUCT,), num_tokens=577)
    assert shown(of(PRODUCT), replace(b, origin=replace(b.origin, torch_version="2.14.0")))[:4] == [
        "vit · float32 · inference · B=8 · C=384 · H=6 · 1 thread",
        "A: eager N=197, 8.00 ms a call, 8.16 ms under the profiler",
        "B: sdpa N=577, 8.00 ms a call, 8.16 ms under the profiler",
        "from A to B: torch 2.13.0 → torch 2.14.0",
    ]
    with_one = replace(of(PRODUCT), spans=(Span("gemm", KERNEL, "stream 7", 0, 0.0, 1e-3),))
    assert any(line.startswith("GPU kernel") for line in shown(of(PRODUCT), with_one))
    printed = shown(stepwise(), stepwise())
    assert "Nothing appeared, vanished, grew or shrank." in printed
    assert not [line for line in printed if line.startswith(("aten::", "GPU kernel"))]
