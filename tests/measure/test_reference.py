"""The cores that never hold all scores compute what plain eager does."""

import pytest
import torch

from bench.measure import reference
from bench.measure.reference import at_random_rows, in_blocks
from impls.attend import eager

MASKS = (None, "causal")


def tensors(*, grad: bool = False) -> tuple[torch.Tensor, ...]:
    """Return q, k and v of two items, three heads, 37 tokens, where v is wider."""
    generator = torch.Generator().manual_seed(1)
    shapes = ((2, 3, 37, 4), (2, 3, 37, 4), (2, 3, 37, 6))
    return tuple(torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_(grad) for shape in shapes)


@pytest.mark.parametrize("mask", MASKS)
def test_the_drawn_rows_are_those_of_eager_and_the_others_are_unknown(mask: str | None) -> None:
    """The seed draws them: every item and head has the same."""
    q, k, v = tensors()
    known, found = (attend(q, k, v, 0.5, mask=mask) for attend in (eager.attend, at_random_rows("seed", 5)))
    rows = ~found.isnan()
    assert rows.all(dim=-1).sum(dim=-1).tolist() == [[5] * 3] * 2
    assert torch.equal(rows, rows[:1, :1].expand_as(rows))
    torch.testing.assert_close(found[rows], known[rows])
    others = at_random_rows("another seed", 5)(q, k, v, 0.5, mask=mask)
    assert not torch.equal(others.isnan(), found.isnan())


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
