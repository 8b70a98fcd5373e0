"""Items of different lengths, padded and packed, and the judgement on their cores."""

from types import SimpleNamespace
from typing import Any

import pytest

import impls
from bench.measure import packed, subjects, workload
from bench.measure.measured_case import MeasuredCase
from bench.plan.case import Point
from bench.sampling.inputs import AFTERWARDS, NORMAL, PEAKED, TIMED
from tests import hacks_of_lengths
from tests.make.points import of_layer
from tests.measure.stub import Announcements, case


def at(layer: str = "core", lengths: str = "list:7+4+3+1", **columns: Any) -> Point:
    """Return a tiny point of four items of different lengths."""
    return of_layer(layer, batch=4, lengths=lengths, **columns)


RUNS = [
    ("sdpa", "core", "inference", "none"),
    ("eager", "vit", "train", "causal"),
    ("mha", "attention", "inference", "causal"),
    ("loop", "core", "train", "causal"),
    ("loop", "attention", "backward", "none"),
    ("loop", "vit", "forward", "causal"),
    ("nested", "vit", "train", "none"),
]


@pytest.mark.parametrize(("name", "layer", "mode", "mask"), RUNS)
def test_padded_and_packed_ways_are_right_from_the_first_call_to_the_last(
    name: str, layer: str, mode: str, mask: str
) -> None:
    """Whole outputs and items of timed calls match the real tokens' outputs, in each mode."""
    with case(at(layer, mode=mode, mask=mask), name, thorough=True) as process:
        reply = process.measure(4)
        reasons = process.reasons()
    assert (reply["status"], reply["detail"]) == ("ok", "")
    assert reasons == dict.fromkeys([NORMAL, PEAKED, AFTERWARDS, TIMED], "")


@pytest.mark.parametrize(("name", "layer", "mode", "mask"), [("sdpa", "vit", "forward", "none"), *RUNS[3:]])
def test_items_of_equal_length_are_packed_too(name: str, layer: str, mode: str, mask: str) -> None:
    """A packed core gets all tokens as one item, and the others no padding mask, so packing can be compared alone."""
    point = at(layer, "fixed", mode=mode, mask=mask)
    with case(point, name, thorough=True) as process:
        reply = process.measure(4)
        reasons = process.reasons()
    work = workload.make(point)
    inputs = packed.formed(work, subjects.subject(work, name)).inputs()
    assert (reply["status"], reply["detail"], {*reasons.values()}) == ("ok", "", {""})
    assert [len(each) for each in inputs] == [4 if name == "sdpa" else 1] * (3 if layer == "core" else 1)


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("num_kv_tokens", {"num_kv_tokens": 9, "context_dim": 12}),
        ("window_size", {"window_size": 2, "num_tokens": 16}),
        ("rope", {"rope": "axial", "num_tokens": 16}),
    ],
)
def test_what_packed_items_cannot_have_is_unsupported(name: str, columns: dict[str, Any]) -> None:
    """The line names the column."""
    work = workload.make(at("attention", "fixed", **columns))
    with pytest.raises(impls.Unsupported, match=f"takes packed items, which can't have {name}$"):
        packed.formed(work, subjects.subject(work, "loop"))


@pytest.mark.parametrize("mode", ["inference", "train"])
@pytest.mark.parametrize("name", hacks_of_lengths.OF_LENGTHS)
def test_a_core_that_is_wrong_for_items_of_different_lengths_is_incorrect(name: str, mode: str) -> None:
    """Use of other items, later tokens, padding, or an earlier batch's lengths is found."""
    hacks_of_lengths.first_packings.clear()
    mask = "none" if name == "padding_leaks" else "causal"
    with case(at("vit", mode=mode, mask=mask), f"tests.hacks_of_lengths:{name}", thorough=True) as process:
        reply = process.measure(4)
        reasons = process.reasons()
    assert (reply["status"], reply["detail"]) == ("ok", "")
    assert any(hacks_of_lengths.OF_LENGTHS[name] in reason for reason in reasons.values()), reasons
    if name == "keeps_the_first_packing":
        assert {reasons[check] for check in (NORMAL, PEAKED, AFTERWARDS)} == {""}


def test_a_graph_takes_no_packed_items() -> None:
    """Its kernels have the lengths of the batch that it was captured with."""
    work = workload.make(at())
    of_packed = packed.formed(work, subjects.subject(work, "loop"))
    of_case: Any = SimpleNamespace(_channel=Announcements(), _work=of_packed)
    with pytest.raises(impls.Unsupported, match="a CUDA graph has the lengths of one batch"):
        MeasuredCase._capture(of_case)
