"""The reference: what is computed in float64 and by plain eager, and cores that never hold all scores."""

import dataclasses
from typing import Any

import pytest
import torch

from bench.measure import cores, correctness, reference, workload
from bench.measure.devices import Gpu
from bench.measure.rounding import MOST_TOLERANCE
from bench.sampling.inputs import AFTERWARDS, InputValues
from impls import Unsupported
from tests.make.checks import checked, compared, expected
from tests.make.points import OF_LAYER, of_layer, point


def test_a_reference_in_float64_is_what_outputs_are_held_against() -> None:
    """The expected output is that of the layer in float64 on the same weights and input."""
    work = workload.make(point())
    target = expected(work)[0].expected[0].targets[0].tensor
    assert target.dtype == torch.float64
    with torch.inference_mode():
        assert torch.allclose(target, work.layer(*work.inputs()).double(), atol=1e-6)
        assert not torch.equal(target, work.layer(*work.inputs()).double())


def off_in_one_item(subject: workload.Subject, item: int) -> workload.Subject:
    """Return an implementation that is wrong in one item of the batch."""

    def call(x: torch.Tensor) -> torch.Tensor:
        factor = torch.ones(len(x), 1, 1)
        factor[item] = 1.01
        return subject.function(x) * factor

    return workload.Subject(subject.layer, call)


def test_on_large_shapes_items_at_random_are_compared_with_float64_and_all_with_plain_eager(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Above the limit float64 computes two items that the system draws; an error in another one is seen too."""
    monkeypatch.setattr(reference, "WHOLE_BATCH_SCORES", 1)
    drawn = set()
    for seed in range(4):
        work = workload.make(point(batch=4, mode="train"), seed)
        checks = expected(work)
        exact, plain = checks[0].expected
        assert (exact.targets[0].tensor.dtype, exact.targets[0].tensor.shape) == (torch.float64, (2, 7, 12))
        output, of_x = (target.tensor for target in plain.targets[:2])
        assert (plain.items, output.dtype, of_x.shape) == ([0, 1, 2, 3], torch.float32, *work.shapes)
        assert compared(workload.subject(work, "sdpa"), work, checks).reason == ""
        drawn.add(tuple(exact.items))
        for item in range(4):
            off = off_in_one_item(workload.subject(work, "eager"), item)
            assert "output" in compared(off, work, checks).reason
    assert len(drawn) > 1


def test_later_checks_have_other_values_and_fewer_exact_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """An output for one shift is no output for another; above the limit one item is compared with float64."""
    monkeypatch.setattr(reference, "WHOLE_BATCH_SCORES", 1)
    work = workload.make(point(batch=4))
    here, there = (reference.expect(work, AFTERWARDS, InputValues(shift)) for shift in (3, 4))
    with torch.inference_mode():
        y = work.layer(*work.inputs(InputValues(3)))
    assert len(here.expected[0].items) == 1
    assert correctness.compare(correctness.Form.of(work), here, [y]).reason == ""
    assert f"({AFTERWARDS})" in correctness.compare(correctness.Form.of(work), there, [y]).reason


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["inference", "forward", "train"])
@pytest.mark.parametrize("layer", OF_LAYER)
def test_long_sequences_are_checked_without_all_scores(layer: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What we ship passes, and a mutant is rejected, on every layer."""
    monkeypatch.setattr(reference, "LONG_SCORES", 1)
    at = of_layer(layer, mode=mode)
    short, result = checked(at, "eager"), checked(at, "sdpa")
    assert (short.reason, result.reason) == ("", "")
    assert result.error <= result.tolerance
    assert checked(at, "tests.mutants:mean_of_values").reason


LONG: list[tuple[str, dict[str, Any]]] = [
    ("bias_transposed", {"attn_bias": "relative"}),
    ("bias_of_first_head", {"attn_bias": "alibi"}),
    ("without_mask", {"mask": "padding", "attn_bias": "relative"}),
    ("boolean_added", {"mask": "padding", "num_kv_tokens": 5, "context_dim": 12}),
    ("padding_of_first_item", {"mask": "padding"}),
    ("groups_tiled", {"num_kv_heads": 2}),
    ("lower_right", {"mask": "causal", "num_kv_tokens": 5, "context_dim": 12}),
    ("lower_right", {"mask": "causal", "num_kv_tokens": 14, "context_dim": 12}),
    ("without_causal_mask", {"mask": "causal", "attn_bias": "alibi", "num_kv_heads": 1}),
    ("windows_by_columns", {"window_size": 2, "num_tokens": 16, "attn_bias": "relative"}),
    ("without_norm", {"qk_norm": "rms", "rope": "axial"}),
]
"""Mutants, and the points at which they are wrong."""


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("mode", ["inference", "train"])
@pytest.mark.parametrize(("mutant", "columns"), LONG, ids=str)
def test_features_of_attention_are_checked_without_all_scores(
    mutant: str, columns: dict[str, Any], mode: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In drawn rows, or block by block if there are gradients, what we ship passes and what is wrong is rejected."""
    for module in (reference, cores):
        monkeypatch.setattr(module, "LONG_SCORES", 20)  # blocks of one or two queries
    monkeypatch.setattr(reference, "ROWS", 8)
    sizes = {"num_tokens": 10, "channels": 16, "token_len": 12, "num_heads": 4}
    work = workload.make(of_layer("attention", **{**sizes, **columns}, mode=mode, dtype=dtype))
    checks = expected(work)
    (output, *_) = checks[0].expected[0].targets
    assert bool(output.tensor.isnan().any()) is (
        mode == "inference" and "window_size" not in columns
    )  # which are small
    assert compared(workload.subject(work, "sdpa"), work, checks).reason == ""
    assert compared(workload.subject(work, f"tests.mutants_of_attention:{mutant}"), work, checks).reason != ""


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("layer", OF_LAYER)
def test_exponentials_of_a_peaked_inputs_logits_overflow(layer: str, dtype: str) -> None:
    """In float32 and bfloat16 that is so above 88.7, and plain eager stays finite."""
    work = workload.make(of_layer(layer, dtype=dtype))
    xs = work.inputs(InputValues(0, reference.peak(work)))
    assert cores.largest_logit(work.layer, tuple(x[:1] for x in xs)) > 88.8
    with torch.inference_mode():
        assert work.layer(*xs).isfinite().all()


class Cancelling(torch.nn.Module):
    """A layer whose rounding is as large as its output."""

    def __init__(self, layer: torch.nn.Module, added: float) -> None:
        super().__init__()
        self.layer = layer
        self.added = added

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer's output after something large was added and taken away."""
        y: torch.Tensor = (self.layer(x) + self.added) - self.added
        return y


@pytest.mark.parametrize(("dtype", "added"), [("float32", 2e7), ("bfloat16", 300.0)])
def test_nothing_is_judged_by_a_layer_that_rounds_too_much(dtype: str, added: float) -> None:
    """A tolerance of eight times its error would accept anything; one that is large is cut."""
    work = workload.make(point(dtype=dtype))
    worse = dataclasses.replace(work, layer=Cancelling(work.layer, added))
    with pytest.raises(Unsupported, match=f"can't be judged: the layer itself, in {dtype}, is off by"):
        reference.expect(worse, AFTERWARDS, InputValues())
    some = dataclasses.replace(work, layer=Cancelling(work.layer, added / 40))
    (target,) = reference.expect(some, AFTERWARDS, InputValues()).expected[0].targets
    assert target.tolerance <= MOST_TOLERANCE[work.values.dtype]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_the_way_to_equal_weights_is_seen_where_the_tolerance_hides_it(share: float) -> None:
    """In bfloat16, with logits so small that attention is nearly a mean; rounding goes no part of the way."""
    work = workload.make(point(batch=2, num_tokens=300, dtype="bfloat16"))
    check = reference.expect(work, AFTERWARDS, InputValues(0, 0.2))
    (target,) = check.expected[0].targets
    assert target.equal is not None
    y = (target.tensor + share * (target.equal - target.tensor)).to(torch.bfloat16)
    assert reference.way_to_equal_weights(y, target) == pytest.approx(share, abs=0.02)
    assert reference.relative_error(y, target.tensor, target.scale) < target.tolerance
    assert ("equal weights" in correctness.compare(correctness.Form.of(work), check, [y]).reason) is (share > 0.3)


def test_a_gradient_that_has_cancelled_out_goes_no_way() -> None:
    """Such as that of a norm's bias of keys: both ends of the way are rounding, and any noise would go far on it."""
    noise, further = torch.randn(2, 64, dtype=torch.float64)
    target = reference.Target(1e-16 * noise, 1.0, 0.1, torch.zeros_like(noise))
    assert reference.way_to_equal_weights((1e-3 * further).bfloat16(), target) == 0.0
    assert reference.way_to_equal_weights(further.bfloat16(), target._replace(tensor=noise)) != 0.0


@pytest.mark.parametrize(("free_bytes", "place"), [(None, "cpu"), (1000, "cpu"), (1 << 30, "meta")])
def test_float64_is_computed_on_a_gpu_with_room_for_it(
    free_bytes: int | None, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else on the CPU. Here the GPU's tensors would be without values."""
    work = dataclasses.replace(workload.make(point()), point=point(device="cuda"))
    monkeypatch.setattr(Gpu, "free_bytes", lambda _gpu: free_bytes)
    monkeypatch.setattr(Gpu, "place", "meta")
    computed: list[str] = []

    def noted(_work: workload.Workload, _layer: object, xs: workload.Tensors, _direction: object) -> workload.Tensors:
        computed.extend(x.device.type for x in xs)
        return (torch.zeros(1),)

    monkeypatch.setattr(reference, "_computed", noted)
    (exact,) = reference._exact(reference.Call(work, work.layer, work.inputs(), None))
    assert computed == [place]
    assert exact.device.type == "cpu"
