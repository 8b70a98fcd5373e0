"""Layers whose own output is not finite, that can't be float64, or that are wrong in one of two types."""

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor, nn

HEADS = 2

Core = Callable[[Tensor, Tensor, Tensor], Tensor]


def scores_of(q: Tensor, k: Tensor) -> Tensor:
    """Return scaled scores [B, H, N, N]."""
    scores: Tensor = q @ k.mT * q.shape[-1] ** -0.5
    return scores


def biased(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Add a bias that is made in float32 for queries of any dtype."""
    return F.scaled_dot_product_attention(q, k, v, -0.5 * distance(q.shape[-2]))


def biased_as_written(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return the same by the formula."""
    return (scores_of(q, k) - 0.5 * distance(q.shape[-2]).to(q.dtype)).softmax(-1) @ v


def from_zeros(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return the same of queries that were written into memory of torch's default dtype."""
    own = torch.zeros(q.shape)
    own[:] = q
    return biased_as_written(own.to(q.dtype), k, v)


def in_float32(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return the same by a product with a matrix of torch's default dtype, in float32."""
    return biased_as_written((torch.eye(q.shape[-2]) @ q.float()).to(q.dtype), k, v)


def distance(tokens: int) -> Tensor:
    """Return how far tokens are from each other, as a float32."""
    return (torch.arange(tokens)[:, None] - torch.arange(tokens)).abs().float()


def hidden(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Hide all keys from the third query, as padding does."""
    mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool)
    mask[2] = False
    return scores_of(q, k).masked_fill(~mask, float("-inf")).softmax(-1) @ v


def overflowing(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return powers that larger inputs make infinite in float16."""
    return F.scaled_dot_product_attention(q, k, v) + (q * 2).exp() * 1e-3


def checking(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Refuse float64."""
    if q.dtype == torch.float64:
        raise TypeError("expected float32 or a half type")
    return F.scaled_dot_product_attention(q, k, v)


def without_kernel(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Use an operator that has no kernel for float64: its own numbers are float32."""
    shift = torch.zeros(q.shape[-1], q.shape[-1], dtype=torch.float32)
    return F.scaled_dot_product_attention(q + q @ shift, k, v)


def infinite_in_float64(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Divide by zero in float64 alone."""
    return F.scaled_dot_product_attention(q, k, v) / (0 if q.dtype == torch.float64 else 1)


def wrong_in_one(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return another number in float64 than in other types."""
    return F.scaled_dot_product_attention(q, k, v) * (1.5 if q.dtype == torch.float64 else 1.0)


CORES: dict[str, Core] = {
    each.__name__: each
    for each in (
        biased,
        biased_as_written,
        from_zeros,
        in_float32,
        hidden,
        overflowing,
        checking,
        without_kernel,
        infinite_in_float64,
        wrong_in_one,
    )
}


class Odd(nn.Module):
    """A layer with one of the CORES."""

    def __init__(self, core: str, channels: int = 12) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)
        self.core = core

    def forward(self, x: Tensor) -> Tensor:
        """Return `[B, N, channels]` for x of the same shape."""
        q, k, v = self.qkv(x).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        y: Tensor = self.proj(CORES[self.core](q, k, v).transpose(1, 2).flatten(2))
        return y


class RootOfZero(nn.Module):
    """A layer with a finite output whose gradient is not finite."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.linear = nn.Linear(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        """Return `[B, N, channels]`."""
        y: Tensor = self.linear(x)
        return y + (y - y.detach()).abs().sqrt()
