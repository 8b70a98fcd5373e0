"""Values that follow from a profile, and two profiles side by side."""

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
from tests.profiles import MIB, profile, stepwise

BLOCKS = (
    Block(100, "a", "one", 0.0, 3.0),
    Block(10, "b", "one", 1.0, 2.0),
    Block(50, "c", "two", 2.0, None),
    Block(5, "d", "two", 4.0, None),
)


def test_overhead_is_the_share_by_which_the_profiler_slows_a_case_down() -> None:
    """A call of 4 ms that takes 5 ms under the profiler has 25 %; what is in no operator is the rest of these 5 ms."""
    of = profile(operators=(Operator("a", 1, 3e-3, 0),))
    of = dataclasses.replace(of, timed_s=4e-3, profiled_s=5e-3)
    assert (overhead(of), unnamed_s(of)) == pytest.approx((0.25, 2e-3))


def test_shares_add_up_to_one() -> None:
    """Of operators by their own time, on a GPU by its time, and of stages; where nothing takes time all are 0."""
    train = stepwise(mode="train")
    assert (sum(shares(train)), sum(stage_shares(train))) == pytest.approx((1, 1))
    for times, expected in (
        ([(3.0, None), (1.0, None)], (0.75, 0.25)),
        ([(1.0, 2.0), (9.0, 0.0)], (1.0, 0.0)),
        ([(0.0, None)], (0.0,)),
    ):
        operators = tuple(Operator("a", 1, self_s, 0, device_s=device_s) for self_s, device_s in times)
        assert shares(profile(operators=operators)) == expected


def test_stages_and_residual_make_the_whole() -> None:
    """What the layer takes beyond its stages is the residual, below zero where the stages were slowed down."""
    of = stepwise(residual_s=0.5e-3)
    assert residual_s(of) == pytest.approx(0.5e-3)
    assert stage_sum_s(of) + residual_s(of) == pytest.approx(of.timed_s)
    assert residual_s(dataclasses.replace(of, timed_s=stage_sum_s(of) / 2)) < 0


def test_the_rate_of_a_stage_is_known_where_its_work_is() -> None:
    """2 GFLOP in half a second are 4 GFLOP/s."""
    assert rate(Stage("a", "forward", 0.5, 0, flops=2e9)) == 4e9
    assert rate(Stage("a", "forward", 0.5, 0)) is rate(Stage("a", "forward", 0.0, 0, flops=2e9)) is None


def test_the_peak_is_explained_by_the_blocks_that_live_at_it() -> None:
    """Live bytes follow what is allocated and freed: 100, 110, then 10 go and 50 come, 100 go, 5 come and stay.

    Blocks come largest first, without what was freed at that moment, and together as large as the peak.
    """
    assert dict(live_bytes(BLOCKS)) == {0.0: 100, 1.0: 110, 2.0: 150, 3.0: 50, 4.0: 55}
    highest = peak(dataclasses.replace(profile(), blocks=BLOCKS))
    assert highest is not None
    assert (highest.bytes, highest.at_s, [block.operator for block in highest.blocks]) == (150, 2.0, ["a", "c"])
    whole = peak(stepwise(mode="train"))
    assert whole is not None
    assert sum(block.bytes for block in whole.blocks) == whole.bytes
    assert peak(dataclasses.replace(profile(), blocks=())) is None


def test_the_table_of_operators_has_units_in_its_names() -> None:
    """A row for each in order; what is unknown is missing, and kernels are one cell."""
    operators = Operator("a", 2, 3.0, 8, 1.0, 5e9, ("k", "l")), Operator("b", 1, 1.0, 0)
    table = operator_table(profile(operators=operators))
    assert list(table) == ["name", "calls", "self_s", "share", "allocated_bytes", "flops", "device_s", "kernels"]
    assert (list(table["name"]), table["kernels"][0]) == (["a", "b"], "k;l")
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
    result = slowdown(dataclasses.replace(profile(), timed_s=timed_s), 0.0791, *ends)
    assert result == (factor and pytest.approx(factor, abs=0.01))


# two profiles

PRODUCT = Operator("aten::mm", 2, 8e-3, 7 * MIB)
SOFTMAX = Operator("aten::_softmax", 1, 2e-3, 7 * MIB)
COPY = Operator("aten::copy_", 3, 1e-3, 2 * MIB)


def of(*operators: Operator, **changes: Any) -> Profile:
    """Return a profile of these operators."""
    return dataclasses.replace(profile(operators=operators), **changes)


def change_of(name: str, before: Profile, after: Profile) -> Change:
    """Return the change of an operator."""
    (change,) = [each for each in difference(before, after) if each.name == name]
    return change


def kernel_span(name: str, start_s: float) -> Span:
    """Return a kernel of a millisecond."""
    return Span(name, KERNEL, "stream 7", 0, start_s, 1e-3)


def span(name: str, depth: int, start_s: float, *, lane: str = "host", kind: str = OPERATOR) -> Span:
    """Return a span of a second."""
    return Span(name, kind, lane, depth, start_s, 1.0)


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
    change = change_of(COPY.name, of(PRODUCT, COPY), of(PRODUCT, dataclasses.replace(COPY, **changes)))
    assert (change.became, change.by) == expected
    views = (of(PRODUCT, Operator("aten::view", 1, time_s, 0)) for time_s in (2e-6, 4e-6))
    assert change_of("aten::view", *views).became == UNCHANGED


def test_what_is_on_one_side_alone_appeared_or_vanished() -> None:
    """The other side costs nothing."""
    there = change_of(COPY.name, of(PRODUCT), of(PRODUCT, COPY))
    assert (there.became, there.before, there.after) == (APPEARED, Cost(), Cost(3, 1e-3, 2 * MIB))
    back = change_of(COPY.name, of(PRODUCT, COPY), of(PRODUCT))
    assert (back.became, back.time_s, back.allocated_bytes) == (VANISHED, -1e-3, -2 * MIB)


def test_the_largest_change_of_time_is_first_whatever_its_sign() -> None:
    """Every operator of either side is there once; together they cost the sum on both sides."""
    slower = dataclasses.replace(COPY, self_s=1.6e-3)
    changes = difference(of(PRODUCT, SOFTMAX, COPY), of(PRODUCT, slower, Operator("fused", 1, 0.4e-3, 0)))
    assert [change.name for change in changes] == [SOFTMAX.name, COPY.name, "fused", PRODUCT.name]
    whole = together(changes)
    assert (whole.before.calls, whole.before.allocated_bytes) == (6, 16 * MIB)
    assert (whole.after.calls, whole.after.allocated_bytes) == (6, 9 * MIB)
    assert whole.time_s == pytest.approx(-1e-3)


def test_callers_are_those_of_the_new_calls() -> None:
    """A copy in a stage where none was is not taken for the one that was there."""
    before = stepwise()
    extra = Span("aten::clone", OPERATOR, "host", 2, 2e-3, 0.1e-3)  # while the projection runs
    operators = tuple(
        dataclasses.replace(each, calls=each.calls + (each.name == "aten::clone")) for each in before.operators
    )
    after = dataclasses.replace(before, spans=(*before.spans, extra), operators=operators)
    for sides in ((before, after), (after, before)):
        (change,) = [each for each in difference(*sides) if each.became != UNCHANGED]
        assert (change.name, change.callers) == ("aten::clone", (("qkv projection", "aten::mm"),))


def test_on_a_gpu_times_are_the_gpus_and_kernels_have_changes_of_their_own() -> None:
    """The host's time of an operator says nothing there; a kernel that took another's place is seen."""
    before, after = (
        of(
            Operator("aten::mm", 2, host_s, 0, device_s=2e-3),
            spans=tuple(kernel_span(name, 1e-3 * at) for at, name in enumerate(names)),
        )
        for host_s, names in ((5e-6, ("old_gemm", "old_gemm", "copy")), (1e-5, ("new_gemm", "copy")))
    )
    changes = {change.name: change for change in difference(before, after)}
    assert {name: (change.kind, change.became) for name, change in changes.items()} == {
        "aten::mm": (OPERATOR, UNCHANGED),
        "old_gemm": (KERNEL, VANISHED),
        "new_gemm": (KERNEL, APPEARED),
        "copy": (KERNEL, UNCHANGED),
    }
    assert (changes["old_gemm"].before.calls, changes["new_gemm"].after.calls) == (2, 1)
    assert (changes["aten::mm"].before.time_s, changes["old_gemm"].time_s) == pytest.approx((2e-3, -2e-3))


def test_a_kernel_that_inductor_made_for_a_cpu_is_counted_once() -> None:
    """It is an operator of the profile, and its span is no second one."""
    fused = of(Operator("cpp_fused_add_0", 1, 1e-3, 0), spans=(kernel_span("cpp_fused_add_0", 0.0),))
    assert [(change.name, change.kind) for change in difference(fused, fused)] == [("cpp_fused_add_0", OPERATOR)]


def test_within_a_chain_is_its_end_and_what_was_called_in_it() -> None:
    """However deep, and nothing that was called elsewhere."""
    change = Change("aten::empty", OPERATOR, GREW, CALLS, Cost(), Cost(), (("clone", "empty_like"),))
    around = ("clone",), ("clone", "empty_like"), ("clone", "empty_like", "aten::empty")
    assert [*map(change.is_within, (*around, ("empty_like",), ("clone", "copy_")))] == [True] * 3 + [False] * 2


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
    """None, or some; stages have no calls to be set against. In a difference it calls nothing."""
    operators = Operator("view", 3, 1e-6, 0), Operator("mm", 1, 1e-3, 0), Operator("reshape", 1, 1e-6, 0)
    partial = of(*operators, spans=(span("scores", 0, 0.0, kind=STAGE), span("view", 1, 0.1), span("mm", 2, 0.2)))
    assert partly_kept(partial) == {"view", "reshape"}
    assert change_of("mm", of(), partial).callers == (("scores",),)
