"""What is shown of profiles, as a terminal has it."""

import re
from dataclasses import replace

from bench.analyse.rows import Row, plain
from bench.show.profile import blocks, row_of
from bench.show.terminal.console import rendered
from bench.store.profile import Profile, ProfiledOperator
from tests.make.profiles import STEPS, by_graph, profile, stepwise
from tests.make.records import ORIGIN
from tests.make.results import results
from tests.profiling.gpu_trace import eager_profile


def lines(of: Profile, top: int = 10, row: Row | None = None) -> list[str]:
    """Return what is printed of a profile."""
    return rendered(blocks(of, row, top)).splitlines()


def cells(*operators: ProfiledOperator, top: int = 10) -> list[list[str]]:
    """Return the cells of each line that is printed of a call of 8 ms with these operators."""
    of = replace(profile(operators=operators), timed_s=8e-3, profiled_s=9e-3)
    return [re.split(r"\s{2,}", line.strip()) for line in lines(of, top)]


def test_operators_stand_with_their_shares_rates_and_what_is_left() -> None:
    """By hand: of 8 ms one takes three quarters, at 2 TFLOP/s; 1 ms is in none; those after the top are summed up."""
    few = cells(ProfiledOperator("aten::mm", 2, 6e-3, 3 << 20, flops=12e9), ProfiledOperator("aten::exp", 1, 1e-3, 0))
    assert ["aten::mm", "6.00 ms", "86%", "2", "3.00 MiB", "2.00 TFLOP/s"] in few
    assert few[-2:] == [["aten::exp", "1.00 ms", "14%", "1", "0 B"], ["in no operator", "2.00 ms"]]
    many = cells(
        *(ProfiledOperator(name, 1, 1e-3 * ms, 1024) for name, ms in zip("abcd", (5, 3, 1, 1), strict=True)), top=2
    )
    assert ["2 others", "2.00 ms", "20%", "2", "2.00 KiB"] in many
    assert not {"c", "d"} & {row[0] for row in many}


def test_on_a_gpu_its_time_stands_beside_the_hosts_and_kernels_are_named() -> None:
    """Shares are of the GPU's time, and every kernel that an operator launched is there."""
    product = ProfiledOperator("aten::mm", 1, 1e-5, 0, 3e-3, 6e9, ("gemm_a", "gemm_b"))
    printed = cells(product, ProfiledOperator("aten::add", 1, 1e-5, 0, 1e-3))
    assert ["aten::mm", "3.00 ms", "75%", "1", "0 B", "2.00 TFLOP/s", "10.0 µs", "gemm_a, gemm_b"] in printed
    assert any("GPU time" in row for row in printed)
    assert not any("in no operator" in row for row in printed)


def test_kernels_of_a_gpu_stand_in_their_order_and_stages_against_their_sum() -> None:
    """Those after the top are summed up; operators without a kernel, too; 75 of 77 µs are in stages."""
    printed = lines(eager_profile(), top=4)
    at = next(number for number, line in enumerate(printed) if line.startswith("kernel "))
    rows = [re.split(r"\s{2,}", line.strip()) for line in printed[at + 1 : at + 6]]
    assert rows[:2] == [["gemm_qkv", "0 ns", "20.0 µs"], ["vectorized_elementwise", "21.0 µs", "4.00 µs", "1.00 µs"]]
    assert rows[4] == ["7 later kernels", "47.0 µs", "7.00 µs"]
    assert "gaps between them 10.0 µs (11.5%)" in printed[at + 6]
    assert printed[-1] == "stages 75.0 µs of 77.0 µs of all kernels; residual 2.00 µs (+2.6%)"
    all_rows = [re.split(r"\s{2,}", line) for line in lines(eager_profile(), top=50)]
    assert ["4 others", "0 ns", "0%", "9", "0 B", "90.0 µs"] in all_rows


def test_stages_are_set_against_the_whole_layer() -> None:
    """Each has its time and share, and the residual is printed as time and share; other layers have none."""
    printed = lines(stepwise(residual_s=1e-3))
    stages = [line.split("  ")[0] for line in printed[printed.index("") + 1 :]]
    assert [name for name in STEPS if name in stages] == list(STEPS)
    whole_s = sum(time_s for _, time_s, _ in STEPS.values())
    assert printed[-1] == f"stages {1e3 * whole_s:.1f} ms of {1e3 * whole_s + 1:.1f} ms; residual 1.00 ms (+8.8%)"
    assert sum(", backward" in line for line in lines(stepwise(mode="train"))) == len(STEPS)
    assert not any("stage" in line for line in lines(profile()))


def test_operators_of_a_graph_stand_with_their_lines_and_cores_with_their_share() -> None:
    """The table of other operators has no such column."""
    printed = lines(by_graph())
    rows = [re.split(r"\s{2,}", line.strip()) for line in printed]
    assert ["aten::bmm", "layer.py:11", "3.00 ms", "75%", "1", "1.00 MiB"] in rows
    assert printed[-1] == "attention cores take 75% of the time of all stages"
    assert not any(line.startswith("attention cores") or "  line" in line for line in lines(stepwise()))


def test_the_runs_own_latency_and_a_doubt_stand_beside_it() -> None:
    """The first lines say if the profile was taken elsewhere, if the run lacks the case, and what can be trusted."""
    here = profile()
    table = results([here.case])
    row = row_of(plain(table), here.case)
    assert row is not None
    assert row_of(plain(table), profile("eager").case) is None
    assert lines(here)[1].endswith("(+2.0%); not measured in the run")
    assert lines(here, row=row)[1].endswith(" in the run")
    elsewhere = replace(here, origin=replace(ORIGIN, env_id="another"))
    assert lines(elsewhere, row=row)[1].endswith("in the run, on another machine or software")
    busy = replace(here, others_cores=1.3, cores=2)
    assert (lines(here)[2], "used 1.3 of 2 cores" in lines(busy)[2]) == ("", True)
