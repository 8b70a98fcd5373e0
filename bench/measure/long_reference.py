"""The core of the reference for long sequences, which never holds all scores at once.

Without gradients only some rows of the output are computed, those of queries drawn at random; the others are NaN. The
operations after a core work on each token by itself, so that the layer's output is NaN there too. With gradients all
rows are computed, block by block, and computed again in the backward pass.
"""

import random
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from bench.sampling.inputs import LONG_SCORES, ROWS
from impls.contract import Attend


def at_random_rows(seed: str, number: int = ROWS) -> Attend:
    """Return a core that computes so many rows of each head, drawn by the seed."""

    def attend(q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None = None) -> Tensor:
        """Return the rows of `softmax((q·scale) kᵀ) v`, NaN elsewhere; shapes are those of `impls.attend.eager`."""
        tokens = q.shape[-2]
        rows = sorted(random.Random(seed).sample(range(tokens), min(number, tokens)))  # noqa: S311 - no secret
        o = torch.full((*q.shape[:-1], v.shape[-1]), float("nan"), dtype=q.dtype, device=q.device)
        o[..., rows, :] = _rows(q[..., rows, :], k, v, scale, mask, rows)
        return o

    return attend


def in_blocks(q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None = None) -> Tensor:
    """Return `softmax((q·scale) kᵀ) v`, some queries at a time; shapes are those of `impls.attend.eager`."""
    tokens = q.shape[-2]
    size = max(1, LONG_SCORES // (q.shape[:-1].numel() // tokens * k.shape[-2]))
    blocks = [range(first, min(first + size, tokens)) for first in range(0, tokens, size)]
    parts = [
        checkpoint(_rows, q[..., rows.start : rows.stop, :], k, v, scale, mask, rows, use_reentrant=False)
        for rows in blocks
    ]
    return torch.cat(parts, dim=-2)


def _rows(q: Tensor, k: Tensor, v: Tensor, scale: float, mask: str | None, rows: Sequence[int]) -> Tensor:
    """Return the output of queries that stand in these rows."""
    scores = (q * scale) @ k.transpose(-2, -1)
    if mask is not None:
        key = torch.arange(k.shape[-2], device=q.device)
        scores = scores.masked_fill(key > torch.tensor(rows, device=q.device)[:, None], float("-inf"))
    scores = scores.softmax(dim=-1)
    return scores @ v
