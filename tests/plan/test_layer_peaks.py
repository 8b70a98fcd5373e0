"""The formulas of peak memory, held against what the allocator did."""

import pytest
import torch

from bench.measure import inspection, workload
from bench.plan.case import Case
from bench.plan.layers import LAYERS, peak_bytes, vit
from impls.attend import online
from tests.points import point


@pytest.mark.parametrize("implementation", sorted(LAYERS["vit"].peaks))
@pytest.mark.parametrize(
    ("batch", "tokens", "token_len", "channels", "heads"),
    [
        (2, 16, 64, 64, 4),
        (2, 128, 64, 64, 4),
        (3, 64, 48, 48, 1),
        (13, 100, 49, 64, 4),
        (1, 300, 64, 64, 2),
        (1, 50, 256, 256, 4),
        (1, 1000, 16, 16, 1),
    ],
)
def test_the_peak_is_predicted_to_the_byte(
    implementation: str, batch: int, tokens: int, token_len: int, channels: int, heads: int
) -> None:
    """Whether scores or copies are the peak, many heads or one: the count of tensors is what was allocated."""
    if implementation == "mha" and token_len != channels:
        pytest.skip("nn.MultiheadAttention needs token_len = channels")
    at = point(batch=batch, num_tokens=tokens, token_len=token_len, channels=channels, num_heads=heads)
    torch.set_num_threads(at.threads)
    work = workload.make(at)
    call = workload.step(workload.subject(work, implementation), work)
    with work.gradient_mode():
        call()
        assert inspection.inspect(call, "cpu").peak_bytes == peak_bytes(Case(at, implementation))


def test_without_a_formula_nothing_is_predicted() -> None:
    """Training, and implementations without a formula, have no prediction; that of online counts with its block."""
    assert peak_bytes(Case(point(mode="train"), "eager")) is None
    assert peak_bytes(Case(point(dtype="bfloat16"), "eager")) is None
    assert peak_bytes(Case(point(), "mine:kernel")) is None
    assert vit.BLOCK_TOKENS == online.BLOCK_TOKENS
