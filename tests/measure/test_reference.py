"""The reference: what is computed in float64 and by plain eager, and cores that never hold all scores."""

import pytest
import torch

from bench.measure import correctness, reference, workload
from bench.measure.reference import at_random_rows, in_blocks
from bench.sampling.inputs import AFTERWARDS, Values
from impls.attend import eager
from tests.checked import checked, compared, expected
from tests.points import OF_LAYER, of_layer, point

MASKS = (None, "causal")


def test_a_reference_in_float64_is_what_outputs_are_held_against() -> None:
    """The expected output is that of the layer in float64 on the same weights and input."""
    work = workload.make(point())
    target = expected(work)[0].expected[0].targets[0].tensor
    assert target.dtype == torch.float64
    with torch.inference_mode():
        assert torch.allclose(target, work.layer(work.x).double(), atol=1e-6)
        assert not torch.equal(target, work.layer(work.x).double())


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
        (exact, plain), x = checks[0].expected, work.x
        assert (exact.targets[0].tensor.dtype, exact.targets[0].tensor.shape) == (torch.float64, (2, 7, 12))
        output, of_x = (target.tensor for target in plain.targets[:2])
        assert (plain.items, output.dtype, of_x.shape) == ([0, 1, 2, 3], torch.float32, x.shape)
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
    here, there = (reference.expect(work, AFTERWARDS, Values(shift)) for shift in (3, 4))
    with torch.inference_mode():
        y = work.layer(work.input(Values(3)))
    assert len(here.expected[0].items) == 1
    assert correctness.compare(work, here, [y]).reason == ""
    assert f"({AFTERWARDS})" in correctness.compare(work, there, [y]).reason


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


def tensors(*, grad: bool = False) -> tuple[torch.Tensor, ...]:
    """Return q, k and v of two items, three heads, 37 tokens, where v is wider."""
    generator = torch.Generator().manual_seed(1)
    shapes = ((2, 3, 37, 4), (2, 3, 37, 4), (2, 3, 37, 6))
    return tuple(torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_(grad) for shape in shapes)


@pytest.mark.parametrize("mask", MASKS)
def test_the_drawn_rows_are_those_of_eager_and_the_others_are_unknown(mask: str | None) -> None:
    """The system draws them: every item and head has the same, and another core others."""
    q, k, v = tensors()
    expected, some = (attend(q, k, v, 0.5, mask=mask) for attend in (eager.attend, at_random_rows(5)))
    rows = ~some.isnan()
    assert rows.all(dim=-1).sum(dim=-1).tolist() == [[5] * 3] * 2
    assert torch.equal(rows, rows[:1, :1].expand_as(rows))
    torch.testing.assert_close(some[rows], expected[rows])
    others = at_random_rows(5)(q, k, v, 0.5, mask=mask)
    assert not torch.equal(others.isnan(), some.isnan())


@pytest.mark.parametrize("scores", [1, 2 * 3 * 37 * 10, 1 << 24])
@pytest.mark.parametrize("mask", MASKS)
def test_blocks_have_the_output_and_the_gradients_of_eager(
    mask: str | None, scores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a block is one query, ten with a shorter last block, or all of them."""
    monkeypatch.setattr(reference, "LONG_SCORES", scores)
    results = []
    for attend in (eager.attend, in_blocks):
        q, k, v = tensors(grad=True)
        o = attend(q, k, v, 0.5, mask=mask)
        results.append((o, *torch.autograd.grad(o, [q, k, v], torch.ones_like(o).cumsum(-1))))
    torch.testing.assert_close(results[0], results[1])
