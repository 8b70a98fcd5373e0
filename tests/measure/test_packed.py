"""The tensors of packed items: the values of the others without padding, and what the judge says of packed cores."""

import random
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

import impls
from bench.measure import packed, subjects, workload
from bench.measure.measured_case import MeasuredCase
from bench.plan.case import Point
from bench.sampling.inputs import AFTERWARDS, KEY_BITS, NORMAL, PEAKED, TIMED, InputValues, shifts
from tests import hacks_of_lengths
from tests.make.points import of_layer
from tests.measure.stub import Announcements, case

KEYS = [random.Random(seed).getrandbits(KEY_BITS) for seed in range(8)]


def at(layer: str = "core", lengths: str = "list:7+4+3+1", **columns: Any) -> Point:
    """Return a tiny point of four items of different lengths."""
    return of_layer(layer, batch=4, lengths=lengths, **columns)


def both(point: Point) -> tuple[workload.Workload, workload.Workload]:
    """Return the padded workload of a point, and the packed one of an implementation."""
    work = workload.make(point)
    formed = packed.formed(work, subjects.subject(work, "loop"))
    assert isinstance(formed.layout, packed.Packed)
    return work, formed


def in_a_row(padded: Tensor, lengths: tuple[int, ...]) -> Tensor:
    """Return the tokens of padded items one after the other."""
    return torch.cat([item[..., :length, :] for item, length in zip(padded, lengths, strict=True)], -2).unsqueeze(0)


def same(some: Any, others: Any) -> bool:
    """Return whether tensors are equal, and as many."""
    return all(torch.equal(*pair) for pair in zip(some, others, strict=True))


@pytest.mark.parametrize("layer", ["core", "attention", "vit"])
def test_packed_inputs_are_the_real_tokens_of_padded_ones(layer: str) -> None:
    """So is the gradient of the output, which is 0 in padding; the mask is left out, and nothing else is."""
    work, of_packed = both(at(layer))
    assert sorted(work.lengths) == [1, 3, 4, 7]
    for values in (InputValues(), InputValues(5, 3.0)):
        *padded, mask = work.inputs(values)
        assert mask.logical_not().sum(1).tolist() == [*work.lengths]
        assert same(of_packed.inputs(values), [in_a_row(each, work.lengths) for each in padded])
    assert torch.equal(of_packed.direction, in_a_row(work.direction, work.lengths))
    assert of_packed.direction.count_nonzero() == work.direction.count_nonzero()
    assert (of_packed.names, of_packed.by_item, of_packed.flops) == (work.names, work.by_item, work.flops)
    assert of_packed.least_work == work.least_work


def test_packed_tensors_are_handed_over_as_padded_ones_with_zeros() -> None:
    """All items, or one of them, in any order of the lengths."""
    work, of_packed = both(at(mode="train"))
    layout = of_packed.layout
    padded = torch.randn(4, 3, 7, 4)
    for lengths in (work.lengths, work.lengths[::-1]):
        layout.arrange(lengths)
        hidden = torch.arange(7) >= torch.tensor(lengths)[:, None]
        expected = padded.masked_fill(hidden[:, None, :, None], 0.0)
        row = layout.packed(padded)
        assert torch.equal(row, in_a_row(padded, lengths))
        assert torch.equal(layout.whole(row), expected)
        assert same([layout.item(row, item) for item in range(4)], expected)
    of_packed.inputs()  # as for a check
    weight = torch.randn(2, 3)
    rows = [in_a_row(padded, work.lengths)] * 4
    handed_over = of_packed.handed_over([*rows, weight])
    assert [tuple(each.shape) for each in handed_over] == [(4, 3, 7, 4)] * 4 + [(2, 3)]
    assert handed_over[-1] is weight


def test_the_order_of_items_changes_from_timing_to_timing() -> None:
    """It follows from the key of a timing alone, for padded and packed items: one batch is packed once."""
    work, of_packed = both(at())
    orders = [work.timed_lengths(key) for key in KEYS]
    assert len({*orders}) > len(KEYS) / 2
    assert {tuple(sorted(order)) for order in orders} == {(1, 3, 4, 7)}
    for key, order in zip(KEYS, orders, strict=True):
        assert of_packed.timed_lengths(key) == order
        for shift in shifts(key, 2):
            mask = work.timed(key, shift)[-1]
            assert tuple(mask.logical_not().sum(1).tolist()) == order


@pytest.mark.parametrize("layer", ["core", "vit"])
def test_timed_inputs_and_directions_agree(layer: str) -> None:
    """In each timing the implementation is arranged for its lengths, and has the values of the padded ones."""
    work, of_packed = both(at(layer, mode="train"))
    of_padded, inputs = subjects.Inputs(work), subjects.Inputs(of_packed)
    for key in KEYS[:3]:
        of_padded.renew(2, key)
        inputs.renew(2, key)
        lengths = of_packed.layout.lengths
        assert lengths == work.timed_lengths(key)
        for _ in range(2):
            *padded, _mask = of_padded.next()
            assert same(inputs.next(), [in_a_row(each, lengths) for each in padded])
        assert torch.equal(inputs.direction, in_a_row(of_padded.direction, lengths))
        assert not inputs.are_edited()
        with torch.no_grad():
            inputs.next()[0][0, ..., 0, 0] += 1
        assert inputs.are_edited()
    inputs.holding(InputValues())
    assert of_packed.layout.lengths == work.lengths


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
    """Whole outputs and items of timed calls are those of real tokens, in each mode."""
    with case(at(layer, mode=mode, mask=mask), name, thorough=True) as process:
        reply = process.measure(4)
        reasons = process.reasons()
    assert (reply["status"], reply["detail"]) == ("ok", "")
    assert reasons == dict.fromkeys([NORMAL, PEAKED, AFTERWARDS, TIMED], "")


@pytest.mark.parametrize("mode", ["inference", "train"])
@pytest.mark.parametrize("name", hacks_of_lengths.OF_LENGTHS)
def test_a_core_that_is_wrong_for_items_of_different_lengths_is_incorrect(name: str, mode: str) -> None:
    """Other items, later tokens, padding, and lengths that were those of an earlier batch are all seen."""
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
    _, of_packed = both(at())
    of_case: Any = SimpleNamespace(_channel=Announcements(), _work=of_packed)
    with pytest.raises(impls.Unsupported, match="a CUDA graph holds the lengths of one batch"):
        MeasuredCase._capture(of_case)
