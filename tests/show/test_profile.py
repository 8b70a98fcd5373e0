"""What is shown of profiles, as a terminal has it."""

import re
from dataclasses import replace

from bench.analyse.rows import Row, plain
from bench.show.profile import blocks, row_of
from bench.show.terminal.console import rendered
from bench.store.profile import Profile, ProfiledOperator
from tests.make.profiles import STAGES, graph, profile
from tests.make.records import ORIGIN, samples
from tests.make.results import results
from tests.profiling.gpu_trace import eager_profile


def lines(of: Profile, top: int = 10, row: Row | None = None) -> list[str]:
    """Return the printed lines of a profile."""
    return rendered(blocks(of, row, top)).splitlines()


def cells(*operators: ProfiledOperator, top: int = 10) -> list[list[str]]:
    """Return the cells of each line that is printed of a call of 8 ms with these operators."""
    of = replace(profile(operators=operators), timed_s=8e-3, profiled_s=9e-3)
    return [re.split(r"\s{2,}", line.strip()) for line in lines(of, top)]


def test_operators_stand_with_their_shares_rates_and_what_is_left() -> None:
    """By hand: of 9 ms one takes 6 ms, at 2 TFLOP/s; 2 ms are in none; those after the top are summed up."""
    few = cells(ProfiledOperator("aten::mm", 2, 6e-3, flops=12e9), ProfiledOperator("aten::exp", 1, 1e-3))
    assert ["aten::mm", "6.00 ms", "86%", "2", "2.00 TFLOP/s"] in few
    assert few[-2:] == [["aten::exp", "1.00 ms", "14%", "1"], ["in no operator", "2.00 ms"]]
    many = cells(*(ProfiledOperator(name, 1, 1e-3 * ms) for name, ms in zip("abcd", (5, 3, 1, 1), strict=True)), top=2)
    assert ["2 others", "2.00 ms", "20%", "2"] in many
    assert not {"c", "d"} & {row[0] for row in many}


def test_on_a_gpu_its_time_stands_beside_the_hosts_and_kernels_are_named() -> None:
    """Shares are of the GPU's time, and every kernel that an operator launched is there."""
    product = ProfiledOperator("aten::mm", 1, 1e-5, 3e-3, 6e9, ("gemm_a", "gemm_b"))
    printed = cells(product, ProfiledOperator("aten::add", 1, 1e-5, 1e-3))
    assert ["aten::mm", "3.00 ms", "75%", "1", "2.00 TFLOP/s", "10.0 µs", "gemm_a, gemm_b"] in printed
    assert any("GPU time" in row for row in printed)
    assert not any("in no operator" in row for row in printed)


def test_kernels_of_a_gpu_stand_in_their_order_and_stages_against_their_sum() -> None:
    """Those after the top are summed up; operators without a kernel, too; 68 of 70 µs are in stages."""
    printed = lines(eager_profile(), top=4)
    at = next(number for number, line in enumerate(printed) if line.startswith("kernel "))
    rows = [re.split(r"\s{2,}", line.strip()) for line in printed[at + 1 : at + 6]]
    assert rows[:2] == [["gemm_qkv", "0 ns", "20.0 µs"], ["copy_q", "21.0 µs", "3.00 µs", "1.00 µs"]]
    assert rows[4] == ["5 later kernels", "41.0 µs", "5.00 µs"]
    assert "gaps between them 8.00 µs (10.3%)" in printed[at + 6]
    assert printed[-2] == "stages 68.0 µs of 70.0 µs of all kernels; 2.00 µs (2.9%) in no stage"
    all_rows = [re.split(r"\s{2,}", line) for line in lines(eager_profile(), top=50)]
    assert ["4 others", "0 ns", "0%", "8", "80.0 µs"] in all_rows


def test_stages_are_set_against_the_whole_call() -> None:
    """Each has its time and share, and cores theirs; operators have lines. Other profiles have neither."""
    printed = lines(graph(residual_s=1e-3))
    rows = [re.split(r"\s{2,}", line.strip()) for line in printed]
    assert [row[0] for row in rows if row[0] in STAGES] == list(STAGES)
    assert ["aten::bmm", "layer.py:9", "6.00 ms", "50%", "1"] in rows
    assert printed[-2:] == [
        "stages 12.0 ms of 13.0 ms; 1.00 ms (7.7%) in no stage",
        "attention cores take 50% of the time of all stages",
    ]
    assert sum(", backward" in line for line in lines(graph(mode="train"))) == len(STAGES)
    assert not any("stage" in line or "  line" in line for line in lines(profile()))


def test_the_runs_own_latency_and_a_doubt_stand_beside_it() -> None:
    """The first lines say if the profile comes from elsewhere, if the run lacks the case, and what to trust."""
    here = profile()
    table = results([here.case])
    row = row_of(plain(table), here.case)
    assert row is not None
    assert row_of(plain(table), profile("eager").case) is None
    assert lines(here)[1].endswith("(+2.0%); not measured in the run")
    assert lines(here, row=row)[1].endswith(" in the run")
    elsewhere = replace(here, origin=replace(ORIGIN, env_id="another"))
    assert lines(elsewhere, row=row)[1].endswith("in the run, on another machine or software")
    busy = replace(here, samples=samples(1e-3, switches=(1,)))
    assert (lines(here)[2], "disturbed 1 of 1 calls" in lines(busy)[2]) == ("", True)
