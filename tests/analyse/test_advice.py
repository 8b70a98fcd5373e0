"""What attention is worth in a model, and what its settings gain."""

import dataclasses

import pytest

from bench.analyse import advice
from bench.analyse.advice import Advice
from bench.analyse.summary import summarise
from bench.plan.case import Case
from bench.show.rows import plain
from impls.catalogue import GRAPH
from tests.make import records
from tests.make.advice import POINT, advised, compared, core, looks, seen
from tests.make.records import record


def test_the_bound_is_amdahls() -> None:
    """A share of a fifth leaves 1.25x, over processes, or over the calls of one; below 1.1x the command stops."""
    answer = advice.seen(POINT, looks(core_share=0.2))
    assert answer.bound.value == pytest.approx(1.25, rel=0.02)
    assert answer.share.low < 0.2 < answer.share.high
    assert advice.seen(POINT, looks()[:1]).share.is_known
    assert (answer.is_little, advice.seen(POINT, looks(core_share=0.05)).is_little) == (False, True)


def test_no_bound_follows_from_a_share_that_may_be_all() -> None:
    """Nor from a graph beside which the model computes whole layers by one operator, nor without a graph or a core."""
    wide = [seen([core("a")], share, share, number=number) for number, share in enumerate((0.5, 0.9, 0.99))]
    answer = advice.seen(POINT, wide)
    assert (answer.share.high, answer.bound.is_known, answer.is_little) == (1.0, False, False)
    for changes in ({"has_whole": True}, {"untraced": "no graph", "cores": []}):
        answer = advice.seen(POINT, [{**each, **changes} for each in looks()])
        assert not answer.bound.is_known
        assert not answer.is_little
    nothing = advice.seen(POINT, [{**each, "cores": []} for each in looks()])
    assert (nothing.bound.is_known, nothing.is_little) == (False, True)


def test_softmaxes_of_no_core_have_their_share() -> None:
    """Those of the same lines together, with all of their layers."""
    others = [{"layer": path, "lines": "model.py:3", "reason": "tanh"} for path in ("a", "b")]
    others.append({"layer": "c", "lines": "model.py:9", "reason": "a gate"})
    one, other = advice.seen(POINT, looks(others=others)).others
    assert (one.layers, one.lines, one.reason) == (("a", "b"), "model.py:3", "tanh")
    assert (one.share.value, other.share.value) == pytest.approx((0.2, 0.1), rel=0.05)


def test_layers_that_are_alike_are_one_kind() -> None:
    """Those with another shape or mask are another, and the longest comes first; one may be called several times."""
    cores = [core("a"), core("b"), core("a"), core("c", mask="float32 [7, 7]")]
    kinds = advice.seen(POINT, [seen(cores, 0.2, 0.3)]).kinds
    assert [(kind.path, kind.count, kind.cores) for kind in kinds] == [("a", 2, 3), ("c", 1, 1)]
    assert kinds[0].share == pytest.approx(0.2 * 3 / 4, rel=0.05)


def test_a_difference_between_graph_and_plain_is_an_objection() -> None:
    """It names the kernels; and a switch of the model that no setting changes is named."""
    (objection,) = advice.seen(POINT, looks(graph_kernels=["product", "softmax"])).objections
    assert "product, softmax" in objection
    (objection,) = advice.seen(POINT, looks(flags=["Block.use_flash_attention = False"])).objections
    assert objection.startswith("Block.use_flash_attention = False is a switch")


def answer(**times_s: float) -> Advice:
    """Return the answer for settings that take these times; the model as it is takes a second."""
    return advised({"as_is": 1.0, **times_s})


def test_points_are_compared_for_each_item() -> None:
    """By their latencies: half precision takes 0.8 times as long."""
    half, large = dataclasses.replace(POINT, dtype="bfloat16"), dataclasses.replace(POINT, batch=4)
    times = {POINT: 1.0, half: 0.8, large: 3.0}
    measured = [
        records.measured(Case(point, "as_is"), process, time_s)
        for point, time_s in times.items()
        for process in range(4)
    ]
    rows = plain(summarise(measured, "as_is"))
    answers = [dataclasses.replace(answer(), point=point, chosen=row) for point, row in zip(times, rows, strict=True)]
    first, second, third = advice.per_item(answers)
    assert [each.point for each in (first, second, third)] == [half, POINT, large]
    assert first.item_s == pytest.approx(0.4, rel=0.02)
    assert (second.behind.value, third.behind.value) == pytest.approx((1.25, 1.875), rel=0.02)
    assert advice.per_item([]) == []


def test_what_is_shown_to_be_faster_is_recommended() -> None:
    """The fastest of them."""
    of = answer(eager=0.8, compiled=0.7, compiled_eager=1.2)
    assert of.recommendation == "compiled"
    by_name = {each.name: each for each in of.alternatives}
    assert by_name["eager"].speedup.value == pytest.approx(1.25, rel=0.02)
    assert 1 < by_name["compiled"].slowdown_high + 0.01 < 0.8 / 0.7 < by_name["eager"].slowdown_high


@pytest.mark.parametrize("time_s", [1.0, 1.3])
def test_what_is_the_same_or_slower_is_not(time_s: float) -> None:
    """Then there is no recommendation, and what it can cost to stay is known; what was not measured has its reason."""
    of = answer(eager=time_s)
    assert (of.recommendation, of.as_is["processes"]) == (None, 8)
    assert 1 <= of.as_is["slowdown_high"] < 1.1
    by_name = {each.name: (each.status, each.detail) for each in of.alternatives}
    assert (by_name["sdpa"], by_name["sdpa_flash"]) == (("same", ""), ("unsupported", "no kernel"))


def test_a_graph_alone_is_no_recommendation() -> None:
    """It is a control; a setting that goes by it is one only if it is shown to be faster than the graph too."""
    settings = {"eager": {"status": "ok", "detail": "", "by": GRAPH}}
    of = advised({"as_is": 1.0, "graph": 0.9, "eager": 0.7, "compiled_eager": 0.8}, settings=settings)
    assert of.recommendation == "eager"
    ways = {each.name: each.by for each in of.alternatives}
    assert (ways["eager"], ways["compiled_eager"]) == (GRAPH, GRAPH)
    for times in ({"graph": 0.7, "eager": 1.2}, {"graph": 0.7, "eager": 0.8}):
        assert advised({"as_is": 1.0, **times}, settings=settings).recommendation is None
    assert advised({"as_is": 1.0, "graph": 0.7, "eager": 0.8}).recommendation == "eager"


def test_a_run_without_the_model_as_it_is_has_no_answer() -> None:
    """Nothing can be compared with a baseline that had no memory."""
    row = record(case=Case(POINT, "as_is"), status="oom", detail="no memory")
    of = compared([row], ["eager"])
    assert (of.recommendation, of.as_is["status"]) == (None, "oom")
