"""The share of attention in a model, and the gain of its settings."""

import dataclasses
from typing import Any

import pytest

from bench.analyse import advice
from bench.analyse.standing import FASTEST, NAMED, NOTHING, UNDECIDED
from bench.plan.case import Case
from bench.plan.core import Softmax
from bench.store.looks import Tried
from impls.catalogue import GRAPH
from tests.make.advice import POINT, advised, compared, core, looks, seen
from tests.make.records import record

BY_GRAPH = {"eager": Tried("ok", "", GRAPH)}


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
        answer = advice.seen(POINT, looks(**changes))
        assert not answer.bound.is_known
        assert not answer.is_little
    nothing = advice.seen(POINT, looks(cores=[]))
    assert (nothing.bound.is_known, nothing.is_little) == (False, True)


def test_softmaxes_of_no_core_have_their_share() -> None:
    """Those of the same lines together, with all of their layers."""
    others = [*(Softmax(path, "model.py:3", "tanh") for path in ("a", "b")), Softmax("c", "model.py:9", "a gate")]
    one, other = advice.seen(POINT, looks(others=others)).softmaxes
    assert (one.layers, one.softmax) == (["a", "b"], others[0])
    assert (one.share, other.share) == pytest.approx((0.2, 0.1), rel=0.05)


def test_layers_that_are_alike_are_one_kind() -> None:
    """Another shape or mask makes another kind, and the longest comes first; a layer may be called several times."""
    cores = [core("a"), core("b"), core("a"), core("c", mask="float32 [7, 7]")]
    kinds = advice.seen(POINT, [seen(cores, 0.2, 0.3)]).layers
    assert [(kind.core.layer, kind.layers, kind.cores) for kind in kinds] == [("a", 2, 3), ("c", 1, 1)]
    assert kinds[0].share == pytest.approx(0.2 * 3 / 4, rel=0.05)


@pytest.mark.parametrize(
    ("times_s", "standing", "name", "recommended"),
    [
        ({"eager": 0.8, "compiled": 0.7, "compiled_eager": 1.2}, FASTEST, "compiled", "compiled"),
        ({"eager": 0.7, "compiled": 0.7}, NAMED, "eager", "eager"),
        ({"eager": 1.3}, FASTEST, "as_is", None),
        ({"eager": 1.0}, NAMED, "as_is", None),
    ],
)
def test_what_is_faster_is_recommended(
    times_s: dict[str, float], standing: str, name: str, recommended: str | None
) -> None:
    """The model as it is stays unless it is slower."""
    of = advised({"as_is": 1.0, **times_s})
    assert (of.choice.standing, of.choice.name, of.recommendation) == (standing, name, recommended)


def test_each_setting_has_its_numbers_or_its_reason() -> None:
    """A setting that was not measured has the status of the look."""
    of = advised({"as_is": 1.0, "eager": 0.8, "compiled": 0.7})
    by_name = {each["name"]: each for each in of.alternatives}
    assert by_name["eager"]["speedup"] == pytest.approx(1.25, rel=0.02)
    assert 1 < by_name["compiled"]["slowdown_high"] + 0.01 < 0.8 / 0.7 < by_name["eager"]["slowdown_high"]
    reasons = {name: (each["status"], each["detail"]) for name, each in by_name.items()}
    assert (reasons["sdpa"], reasons["sdpa_flash"]) == (("same", ""), ("unsupported", "no kernel"))


@pytest.mark.parametrize(
    ("changes", "bound", "standing"),
    [
        ({"slowdown_high": 1.09}, 1.09, NAMED),
        ({"slowdown_high": 1.25}, 1.25, UNDECIDED),
        ({"slowdown_high": None}, None, UNDECIDED),
    ],
)
def test_a_model_that_may_be_slower_by_much_is_not_decided(
    changes: dict[str, Any], bound: float | None, standing: str
) -> None:
    """Another setting is named, but the unchanged model isn't slower: its own bound is told."""
    of = advised({"as_is": 1.0, "eager": 0.8})
    rows = {**of.rows, "as_is": {**of.as_is, "standing": "open", **changes}}
    rows["eager"] = {**rows["eager"], "standing": NAMED, "slowdown_high": 1.01}
    choice = dataclasses.replace(of, rows=rows).choice
    assert (choice.standing, choice.name, choice.rivals) == (standing, "as_is", ("eager",))
    assert choice.bound == pytest.approx(bound or float("nan"), nan_ok=True)
    assert dataclasses.replace(of, rows=rows).recommendation is None


@pytest.mark.parametrize(
    ("times_s", "settings", "recommended"),
    [
        ({"graph": 0.9, "eager": 0.7, "compiled_eager": 0.8}, BY_GRAPH, "eager"),
        ({"graph": 0.7, "eager": 1.2}, BY_GRAPH, None),
        ({"graph": 0.7, "eager": 0.7}, BY_GRAPH, None),
        ({"graph": 0.7, "eager": 0.8}, {}, "eager"),
    ],
)
def test_a_graph_alone_is_no_recommendation(
    times_s: dict[str, float], settings: dict[str, Any], recommended: str | None
) -> None:
    """It is a control; a setting that goes by it is recommended only if it is faster than the graph too."""
    of = advised({"as_is": 1.0, **times_s}, **({"settings": settings} if settings else {}))
    assert of.recommendation == recommended


def test_a_run_without_the_model_as_it_is_has_no_answer() -> None:
    """Nothing can be compared with a baseline that had no memory."""
    row = record(case=Case(POINT, "as_is"), status="oom", detail="no memory")
    of = compared([row], ["eager"])
    assert (of.recommendation, of.choice.standing, of.as_is["status"]) == (None, NOTHING, "oom")
