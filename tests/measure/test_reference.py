"""The reference: computations in float64 and by plain eager, and cores that never hold all scores."""

import dataclasses
from typing import Any

import pytest
import torch

from bench.measure import cores, correctness, outputs, reference, subjects, workload
from bench.measure.devices import Gpu
from bench.measure.rounding import MOST_TOLERANCE
from bench.sampling.inputs import AFTERWARDS, InputValues, TimedCall
from impls import Unsupported
from tests.make.checks import checked, compared, expected
from tests.make.points import OF_LAYER, of_layer, point


def test_on_large_shapes_an_item_at_random_and_the_last_are_compared_with_float64(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The system draws it; an error only in the last item is always seen, in gradients of inputs too."""
    monkeypatch.setattr(reference, "WHOLE_BATCH_SCORES", 1)
    drawn = set()
    for seed in range(12):
        work = workload.make(point(batch=4, mode="train"), seed)
        check = reference.expect(work, AFTERWARDS, InputValues())
        assert check.items[-1] == 3
        assert [check.targets[0].tensor.dtype, *check.targets[0].tensor.shape] == [torch.float64, 2, 7, 12]
        drawn.add(check.items[0])
        subject = subjects.subject(work, "sdpa")
        output = outputs.compute(subject, work, tuple(x.clone() for x in work.inputs()))
        assert correctness.compare(work, check, output.tensors).reason == ""
        for number, name in enumerate(work.names[: work.by_item]):
            tensors = [tensor.clone() for tensor in output.tensors]
            tensors[number][3] *= 1.01
            reason = correctness.compare(work, check, tensors).reason
            assert reason.startswith(name)
            assert "item 3" in reason
    assert len(drawn) > 1  # this fails once in 177,000 times


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_gradients_of_weights_at_large_shapes_are_compared_in_timed_calls(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are sums over the whole batch, which is computed for these calls alone."""
    monkeypatch.setattr(reference, "WHOLE_BATCH_SCORES", 1)
    work = workload.make(point(batch=5, mode="train", dtype=dtype))
    check, call = reference.expect(work, AFTERWARDS, InputValues()), TimedCall(1, 0)
    timed = dataclasses.replace(work, direction=work.direction_of(call.key))
    tensors = [*outputs.compute(subjects.subject(work, "sdpa"), timed, work.of_call(call)).tensors]
    assert correctness.compare_timed(work, check, [(call, tensors)]).reason == ""
    tensors[-1] = tensors[-1] * 1.2
    assert correctness.compare_timed(work, check, [(call, tensors)]).reason.startswith(f"{work.names[-1]} (")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["inference", "forward", "train"])
@pytest.mark.parametrize("layer", OF_LAYER)
def test_long_sequences_are_checked_without_all_scores(layer: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shipped implementations pass, and a mutant is rejected, on every layer."""
    monkeypatch.setattr(reference, "LONG_SCORES", 1)
    at = of_layer(layer, mode=mode)
    short, result = checked(at, "eager"), checked(at, "sdpa")
    assert (short.reason, result.reason) == ("", "")
    assert result.error <= result.tolerance
    assert checked(at, "tests.mutants:mean_of_values").reason


LONG: list[tuple[str, dict[str, Any]]] = [
    ("bias_transposed", {"attn_bias": "relative"}),
    ("bias_of_first_head", {"attn_bias": "alibi"}),
    ("without_mask", {"lengths": "uniform", "attn_bias": "relative"}),
    ("boolean_added", {"lengths": "uniform"}),
    ("padding_of_first_item", {"lengths": "uniform"}),
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
    """In drawn rows, or in blocks if there are gradients, shipped implementations pass and wrong ones are rejected."""
    monkeypatch.setattr(reference, "LONG_SCORES", 20)
    monkeypatch.setattr(cores, "LONG_SCORES", 250)  # blocks of some queries, and a shorter one
    monkeypatch.setattr(reference, "ROWS", 8)
    sizes = {"num_tokens": 10, "channels": 16, "token_len": 12, "num_heads": 4}
    work = workload.make(of_layer("attention", **{**sizes, **columns}, mode=mode, dtype=dtype))
    checks = expected(work)
    (output, *_) = checks[0].targets
    in_drawn_rows = mode == "inference" and "window_size" not in columns  # which are small
    assert bool(output.tensor.isnan().any()) is (in_drawn_rows or work.point.is_padded)
    assert compared(subjects.subject(work, "sdpa"), work, checks).reason == ""
    assert compared(subjects.subject(work, f"tests.mutants_of_attention:{mutant}"), work, checks).reason != ""


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
    with pytest.raises(Unsupported, match=f"can't be judged, because in {dtype} the layer itself is off by"):
        reference.expect(worse, AFTERWARDS, InputValues())
    some = dataclasses.replace(work, layer=Cancelling(work.layer, added / 40))
    (target,) = reference.expect(some, AFTERWARDS, InputValues()).targets
    assert target.tolerance <= MOST_TOLERANCE[work.values.dtype]


@pytest.mark.parametrize(("free_bytes", "place"), [(None, "cpu"), (1000, "cpu"), (1 << 30, "meta")])
def test_float64_is_computed_on_a_gpu_with_room_for_it(
    free_bytes: int | None, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else on the CPU. Here the GPU's tensors would be without values."""
    work = dataclasses.replace(workload.make(point()), point=point(device="cuda"))
    monkeypatch.setattr(Gpu, "free_bytes", lambda _gpu: free_bytes)
    monkeypatch.setattr(Gpu, "place", "meta")
    assert reference._exact_place(work) == place


def of_odd(core: str, mode: str = "inference", dtype: str = "float32") -> Any:
    """Return a point of an odd layer, with more tokens than a vector of numbers has."""
    return point(layer=f"tests.odd_layers:Odd[core={core}]", mode=mode, dtype=dtype, num_tokens=40)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("mode", ["inference", "train"])
def test_a_mask_that_a_layer_makes_in_float32_is_right_beside_float64(mode: str, dtype: str) -> None:
    """Torch's function, and the formula on memory that the layer makes, have the formula's expected outputs."""
    masked, copied, written = (
        expected(workload.make(of_odd(core, mode, dtype)))[0].targets
        for core in ("biased", "from_zeros", "biased_as_written")
    )
    for one, other in zip((*masked, *copied), (*written, *written), strict=True):
        assert one.tensor.dtype == torch.float64
        assert torch.allclose(one.tensor, other.tensor, rtol=0, atol=1e-9 * one.scale)
    assert expected(workload.make(of_odd("in_float32", mode, dtype)))  # which fails with float64 as the default


@pytest.mark.parametrize("mode", ["inference", "train"])
@pytest.mark.parametrize(
    ("core", "dtype", "words"),
    [
        ("checking", "float32", "because the layer fails in float64: TypeError: expected float32 or a half type"),
        ("without_kernel", "float32", "because the layer fails in float64: RuntimeError: "),
        ("infinite_in_float64", "float32", "the layer's own output is not finite: .* in float64"),
        ("wrong_in_one", "float32", "because in float32 the layer itself is off by"),
        ("wrong_in_one", "bfloat16", "because in bfloat16 the layer itself is off by"),
    ],
)
def test_nothing_is_judged_by_a_layer_that_float64_disagrees_with(core: str, dtype: str, words: str, mode: str) -> None:
    """It fails there, is not finite there, or is another function."""
    with pytest.raises(Unsupported, match=words):
        expected(workload.make(of_odd(core, mode, dtype)))


def test_a_timed_call_of_short_items_has_something_expected_in_each() -> None:
    """Rows of a call are chosen at random; if an item's rows are all padding, all rows are computed."""
    work = workload.make(point(num_tokens=512, batch=3, lengths="list:512+1+1"))
    for key in range(4):
        calls = [TimedCall(key, 0, item) for item in range(3)]
        for (output,) in reference.of_items(work, expected(work)[-1], calls):
            assert not output.tensor.isnan().all()


def test_gradients_from_weights_that_are_computed_again_are_within_the_tolerance() -> None:
    """Flash attention scales logits at another place than eager, and 128 ** -0.5 is no power of 2.

    This input has a small error of eager, and this call a large one of flash attention.
    """
    work = workload.make(point(layer="core", mode="train", batch=2, num_tokens=256, channels=256, num_heads=2), 1)
    check = reference.expect(work, AFTERWARDS, InputValues(5))
    call = TimedCall(626, 0)
    leaves = [x.clone().requires_grad_() for x in work.of_call(call)]
    output = subjects.subject(work, "sdpa").function(*leaves)
    tensors = [output.detach(), *torch.autograd.grad(output, leaves, work.direction_of(call.key))]
    for tensor, target in zip(tensors, reference.of_call(work, check, call), strict=True):
        assert reference.relative_error(tensor, target.tensor, target.scale) < target.tolerance < 2e-5
