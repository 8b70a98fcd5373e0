"""What follows from a profile."""

import dataclasses
from typing import Any

import pytest

from bench.analyse.profile import (
    APPEARED,
    BYTES,
    CALLS,
    GREW,
    SHRANK,
    TIME,
    UNCHANGED,
    VANISHED,
    Change,
    Cost,
    chains,
    difference,
    live_bytes,
    operator_table,
    overhead,
    partly_kept,
    peak,
    rate,
    residual_s,
    shares,
    slowdown,
    stage_shares,
    stage_sum_s,
    together,
    unnamed_s,
)
from bench.store.profile import KERNEL, OPERATOR, STAGE, Block, Operator, Profile, Span, Stage
from tests import profiles
from tests.profiles import MIB, profile, stepwise

PRODUCT = Operator("aten::mm", 2, 8e-3, 7 * MIB)
SOFTMAX = Operator("aten::_softmax", 1, 2e-3, 7 * MIB)
COPY = Operator("aten::copy_", 3, 1e-3, 2 * MIB)


def test_overhead_is_the_share_by_which_the_profiler_slows_a_case_down() -> None:
    """A call of 4 ms that takes 5 ms under the profiler has 25 %."""
    made = dataclasses.replace(profiles.profile(), timed_s=4e-3, profiled_s=5e-3)
    assert overhead(made) == pytest.approx(0.25)


def test_shares_add_up_to_one() -> None:
    """Of operators by their own time, on a GPU by its time, and of stages; where nothing takes time all are 0."""
    train = profiles.stepwise(mode="train")
    assert sum(shares(train)) == pytest.approx(1)
    assert sum(stage_shares(train)) == pytest.approx(1)
    for times, expected in (
        ([(3.0, None), (1.0, None)], (0.75, 0.25)),
        ([(1.0, 2.0), (9.0, 0.0)], (1.0, 0.0)),
        ([(0.0, None)], (0.0,)),
    ):
        operators = tuple(Operator("a", 1, self_s, 0, device_s=device_s) for self_s, device_s in times)
        assert shares(profiles.profile(operators=operators)) == expected


def test_stages_and_residual_make_the_whole() -> None:
    """What the layer takes beyond its stages is the residual, below zero where the stages were slowed down."""
    made = profiles.stepwise(residual_s=0.5e-3)
    assert residual_s(made) == pytest.approx(0.5e-3)
    assert stage_sum_s(made) + residual_s(made) == pytest.approx(made.timed_s)
    assert residual_s(dataclasses.replace(made, timed_s=stage_sum_s(made) / 2)) < 0


def test_what_is_in_no_operator_is_the_rest_of_the_profiled_call() -> None:
    """Of 3.5 s an operator takes 3."""
    made = dataclasses.replace(profiles.profile(operators=(Operator("a", 1, 3.0, 0),)), profiled_s=3.5)
    assert unnamed_s(made) == pytest.approx(0.5)


def test_the_rate_of_a_stage_is_known_where_its_work_is() -> None:
    """2 GFLOP in half a second are 4 GFLOP/s."""
    assert rate(Stage("a", "forward", 0.5, 0, flops=2e9)) == 4e9
    assert rate(Stage("a", "forward", 0.5, 0)) is None
    assert rate(Stage("a", "forward", 0.0, 0, flops=2e9)) is None


BLOCKS = (
    Block(100, "a", "one", 0.0, 3.0),
    Block(10, "b", "one", 1.0, 2.0),
    Block(50, "c", "two", 2.0, None),
    Block(5, "d", "two", 4.0, None),
)


def test_live_bytes_follow_what_is_allocated_and_freed() -> None:
    """By hand: 100, 110, then 10 go and 50 come, 100 go, 5 come and stay."""
    assert dict(live_bytes(BLOCKS)) == {0.0: 100, 1.0: 110, 2.0: 150, 3.0: 50, 4.0: 55}


def test_the_peak_is_explained_by_the_blocks_that_live_at_it() -> None:
    """Largest first, without what was freed at that moment, and together as large as the peak."""
    found = peak(dataclasses.replace(profiles.profile(), blocks=BLOCKS))
    assert found is not None
    assert (found.bytes, found.at_s) == (150, 2.0)
    assert [block.operator for block in found.blocks] == ["a", "c"]
    whole = peak(profiles.stepwise(mode="train"))
    assert whole is not None
    assert sum(block.bytes for block in whole.blocks) == whole.bytes
    assert peak(dataclasses.replace(profiles.profile(), blocks=())) is None


def test_the_table_of_operators_has_units_in_its_names() -> None:
    """A row for each in order; what is unknown is missing, and kernels are one cell."""
    table = operator_table(
        profiles.profile(operators=(Operator("a", 2, 3.0, 8, 1.0, 5e9, ("k", "l")), Operator("b", 1, 1.0, 0)))
    )
    assert list(table) == ["name", "calls", "self_s", "share", "allocated_bytes", "flops", "device_s", "kernels"]
    assert list(table["name"]) == ["a", "b"]
    assert table["kernels"][0] == "k;l"
    assert table["flops"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("timed_s", "ends", "factor"),
    [
        (0.239, (0.077, 0.081), 3.02),
        (0.04, (0.077, 0.081), 0.506),
        (0.088, (0.077, 0.081), None),
        (0.12, (0.05, 0.13), None),
        (0.12, (None, None), 1.52),
        (0.08, (None, None), None),
    ],
)
def test_another_latency_than_that_of_the_run_counts_beyond_interval_and_drift(
    timed_s: float, ends: tuple[float | None, float | None], factor: float | None
) -> None:
    """The run measured 79 ms: 239 ms are 3 times that; 11 % are everyday drift, and a wide interval holds more."""
    found = slowdown(dataclasses.replace(profiles.profile(), timed_s=timed_s), 0.0791, *ends)
    assert found == (factor if factor is None else pytest.approx(factor, abs=0.01))


def of(*operators: Operator) -> Profile:
    """Return a profile of these operators."""
    return profile(operators=operators)


def became(before: Operator, after: Operator) -> tuple[str, str]:
    """Return what became of one operator among two that stay as they are."""
    (change,) = [each for each in difference(of(PRODUCT, before), of(PRODUCT, after)) if each.name == before.name]
    return change.became, change.by


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (UNCHANGED, "")),
        ({"calls": 4}, (GREW, CALLS)),
        ({"calls": 2}, (SHRANK, CALLS)),
        ({"calls": 10 / 3}, (GREW, CALLS)),
        ({"allocated_bytes": 2 * MIB + 1}, (GREW, BYTES)),
        ({"allocated_bytes": 0}, (SHRANK, BYTES)),
        ({"self_s": 1.3e-3}, (GREW, TIME)),
        ({"self_s": 0.7e-3}, (SHRANK, TIME)),
        ({"self_s": 1.1e-3}, (UNCHANGED, "")),
        ({"calls": 4, "allocated_bytes": 0, "self_s": 0.1e-3}, (GREW, CALLS)),
        ({"allocated_bytes": MIB, "self_s": 9e-3}, (SHRANK, BYTES)),
        ({"calls": 3 + 1e-12, "flops": 1.0, "kernels": ("gemm",)}, (UNCHANGED, "")),
    ],
)
def test_calls_decide_then_bytes_then_a_time_beyond_the_margin(
    changes: dict[str, Any], expected: tuple[str, str]
) -> None:
    """What is exact comes first, however the time went; twice a time that is next to nothing decides nothing."""
    assert became(COPY, dataclasses.replace(COPY, **changes)) == expected
    view = Operator("aten::view", 1, 2e-6, 0)
    assert became(view, dataclasses.replace(view, self_s=4e-6)) == (UNCHANGED, "")


def test_what_is_on_one_side_alone_appeared_or_vanished() -> None:
    """The other side costs nothing."""
    (change,) = [each for each in difference(of(PRODUCT), of(PRODUCT, COPY)) if each.name == COPY.name]
    assert (change.became, change.before, change.after) == (APPEARED, Cost(), Cost(3, 1e-3, 2 * MIB))
    (back,) = [each for each in difference(of(PRODUCT, COPY), of(PRODUCT)) if each.name == COPY.name]
    assert (back.became, back.time_s, back.allocated_bytes) == (VANISHED, -1e-3, -2 * MIB)


def test_the_largest_change_of_time_is_first_whatever_its_sign() -> None:
    """Every operator of either side is there once."""
    slower = dataclasses.replace(COPY, self_s=1.6e-3)
    found = difference(of(PRODUCT, SOFTMAX, COPY), of(PRODUCT, slower, Operator("fused", 1, 0.4e-3, 0)))
    assert [change.name for change in found] == [SOFTMAX.name, COPY.name, "fused", PRODUCT.name]


def test_callers_are_those_of_the_new_calls() -> None:
    """A copy in a stage where none was is told from the one that was there."""
    before = stepwise()
    extra = Span("aten::clone", OPERATOR, "host", 2, 2e-3, 0.1e-3)  # while the projection runs
    clone = next(each for each in before.operators if each.name == "aten::clone")
    after = dataclasses.replace(
        before,
        spans=(*before.spans, extra),
        operators=tuple(
            dataclasses.replace(each, calls=each.calls + 1) if each is clone else each for each in before.operators
        ),
    )
    (change,) = [each for each in difference(before, after) if each.became != UNCHANGED]
    assert (change.name, change.callers) == ("aten::clone", (("qkv projection", "aten::mm"),))
    (back,) = [each for each in difference(after, before) if each.became != UNCHANGED]
    assert back.callers == change.callers


def test_on_a_gpu_times_are_the_gpus_and_kernels_have_changes_of_their_own() -> None:
    """The host's time of an operator says nothing there; a kernel that took another's place is seen."""
    host_s, device_s = 5e-6, 2e-3
    before = dataclasses.replace(
        of(Operator("aten::mm", 2, host_s, 0, device_s=device_s)),
        spans=(kernel_span("old_gemm", 0.0), kernel_span("old_gemm", 1e-3), kernel_span("copy", 2e-3)),
    )
    after = dataclasses.replace(
        of(Operator("aten::mm", 2, 2 * host_s, 0, device_s=device_s)),
        spans=(kernel_span("new_gemm", 0.0), kernel_span("copy", 2e-3)),
    )
    found = {change.name: change for change in difference(before, after)}
    assert found["aten::mm"].became == UNCHANGED
    assert found["aten::mm"].before.time_s == device_s
    assert [(found[name].kind, found[name].became) for name in ("old_gemm", "new_gemm", "copy")] == [
        (KERNEL, VANISHED),
        (KERNEL, APPEARED),
        (KERNEL, UNCHANGED),
    ]
    assert (found["old_gemm"].before.calls, found["new_gemm"].after.calls) == (2, 1)
    assert found["old_gemm"].time_s == pytest.approx(-2e-3)


def test_a_kernel_that_inductor_made_for_a_cpu_is_counted_once() -> None:
    """It is an operator of the profile, and its span is no second one."""
    fused = dataclasses.replace(
        of(Operator("cpp_fused_add_0", 1, 1e-3, 0)), spans=(kernel_span("cpp_fused_add_0", 0.0),)
    )
    assert [(change.name, change.kind) for change in difference(fused, fused)] == [("cpp_fused_add_0", OPERATOR)]


def test_several_changes_cost_the_sum() -> None:
    """On both sides."""
    found = difference(of(PRODUCT, SOFTMAX), of(PRODUCT, COPY))
    whole = together(found)
    assert (whole.before.calls, whole.before.allocated_bytes) == (3, 14 * MIB)
    assert (whole.after.calls, whole.after.allocated_bytes) == (5, 9 * MIB)
    assert whole.time_s == pytest.approx(-1e-3)


def test_within_a_chain_is_its_end_and_what_was_called_in_it() -> None:
    """However deep, and nothing that was called elsewhere."""
    change = Change("aten::empty", OPERATOR, GREW, CALLS, Cost(), Cost(), (("clone", "empty_like"),))
    assert change.is_within(("clone",))
    assert change.is_within(("clone", "empty_like"))
    assert change.is_within(("clone", "empty_like", "aten::empty"))
    assert not change.is_within(("empty_like",))
    assert not change.is_within(("clone", "copy_"))


def kernel_span(name: str, start_s: float) -> Span:
    """Return a kernel of a millisecond."""
    return Span(name, KERNEL, "stream 7", 0, start_s, 1e-3)


def span(name: str, depth: int, start_s: float, *, lane: str = "host", kind: str = OPERATOR) -> Span:
    """Return a span of a second."""
    return Span(name, kind, lane, depth, start_s, 1.0)


@pytest.mark.parametrize(
    ("spans", "without", "expected"),
    [
        (
            [
                span("merge heads", 0, 0.0, kind=STAGE),
                span("clone", 1, 0.0),
                span("copy_", 2, 0.5),
                span("clone", 0, 2.0),
                span("copy_", 1, 2.5),
                span("copy_", 1, 2.8),
            ],
            set(),
            {
                "merge heads": {(): 1},
                "clone": {("merge heads",): 1, (): 1},
                "copy_": {("merge heads", "clone"): 1, ("clone",): 2},
            },
        ),
        (
            [span("mm", 0, 0.0), span("kernel", 1, 0.2, lane="stream 7"), span("empty", 1, 0.5)],
            set(),
            {"mm": {(): 1}, "kernel": {(): 1}, "empty": {("mm",): 1}},
        ),
        (
            [span("outer", 0, 0.0), span("one", 2, 0.1), span("two", 2, 0.2)],
            set(),
            {"outer": {(): 1}, "one": {("outer",): 1}, "two": {("outer",): 1}},
        ),
        (
            [span("outer", 0, 0.0), span("view", 1, 0.0), span("copy_", 2, 0.0), span("next", 0, 1.0)],
            {"view"},
            {"outer": {(): 1}, "view": {("outer",): 1}, "copy_": {("outer",): 1}, "next": {(): 1}},
        ),
    ],
    ids=["depths", "lanes", "a depth left out", "a name left out"],
)
def test_a_chain_holds_what_is_around_from_the_outside_in(
    spans: list[Span], without: set[str], expected: dict[str, dict[tuple[str, ...], int]]
) -> None:
    """Stages and operators of one lane alike, in any order of the list; a name that is left out calls nothing."""
    assert chains(spans, without) == chains(spans[::-1], without) == expected


def test_what_has_fewer_spans_than_calls_is_partly_kept() -> None:
    """None, or some; stages have no calls to be set against."""
    made = dataclasses.replace(
        profile(operators=(Operator("view", 3, 1e-6, 0), Operator("mm", 1, 1e-3, 0), Operator("reshape", 1, 1e-6, 0))),
        spans=(span("scores", 0, 0.0, kind=STAGE), span("view", 1, 0.1), span("mm", 1, 0.2)),
    )
    assert partly_kept(made) == {"view", "reshape"}
