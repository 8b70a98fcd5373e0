"""Models of a few thousand weights, and attends to put into them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

Core = Callable[[Tensor, Tensor, Tensor], Tensor]
"""The core of queries, keys and values `[B, H, N, D]`."""


def masked(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Compute the core by torch's function with a mask tensor."""
    return F.scaled_dot_product_attention(q, k, v, q.new_zeros(q.shape[2], q.shape[2]))


def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Compute the core by torch's function with a causal mask."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def written(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Compute the core by the formula written out."""
    weights: Tensor = (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1)
    return weights @ v


def capped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Compute it with a soft cap, which SDPA can't express."""
    scores = q @ k.mT * q.shape[-1] ** -0.5
    return (torch.tanh(scores / 30) * 30).softmax(-1) @ v


def imported(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Compute the core by a name of this file for torch's function."""
    return scaled_dot_product_attention(q, k, v)


def flat(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Compute the core with heads and items together, so that queries have three dimensions."""
    return F.scaled_dot_product_attention(q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1)).view_as(q)


def careful(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Compute the core by torch's function, or another way if that fails."""
    try:
        return masked(q, k, v)
    except Exception:
        return written(q, k, v)


class Attention(nn.Module):
    """Attention of tokens, with `F.scaled_dot_product_attention` unless another core is given."""

    def __init__(self, channels: int, heads: int = 2, core: Core | None = None) -> None:
        super().__init__()
        self.qkv = nn.Linear(channels, 3 * channels)
        self.proj = nn.Linear(channels, channels)
        self.heads = heads
        if core is not None:
            self.core = core  # type: ignore[assignment,method-assign]

    def forward(self, x: Tensor) -> Tensor:
        """Return tokens `[B, N, C]` for tokens."""
        o = self.core(*self.qkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4))
        y: Tensor = self.proj(o.transpose(1, 2).flatten(2))
        return y

    def core(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return the core of queries, keys and values `[B, H, N, D]`."""
        return F.scaled_dot_product_attention(q, k, v)


Written, Capped, Careful = (partial(Attention, core=core) for core in (written, capped, careful))


class LearnedBias(Attention):
    """The same with a bias that is computed from a parameter."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self.slope = nn.Parameter(torch.ones(()))

    def core(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return the core of queries, keys and values `[B, H, N, D]`."""
        return F.scaled_dot_product_attention(q, k, v, self.slope * torch.arange(q.shape[2]).to(q.dtype)[None])


class Replaceable(Attention):
    """The same with an attend of its own, as the suite's layers have it."""

    def __init__(self, channels: int, attend: Any = None) -> None:
        super().__init__(channels)
        self.attend = attend or with_mask

    def core(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return the core of queries, keys and values `[B, H, N, D]`."""
        o: Tensor = self.attend(q, k, v, q.shape[-1] ** -0.5)
        return o


class Pair(Replaceable):
    """The same with two results."""

    def forward(self, x: Tensor) -> Any:
        """Return tokens `[B, N, C]`, and nothing beside."""
        return super().forward(x), None


class Switched(Attention):
    """Attention with timm's switch, `fused_attn`."""

    fused_attn = True

    def core(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return the core of queries, keys and values `[B, H, N, D]`."""
        return super().core(q, k, v) if self.fused_attn else written(q, k, v)


KINDS: dict[str, Callable[[int], Attention]] = {
    "sdpa": Attention,
    "learned bias": LearnedBias,
    "switched": Switched,
    "replaceable": Replaceable,
    **{core.__name__: partial(Attention, core=core) for core in (masked, causal, written, capped, imported, flat)},
}


class Net(nn.Module):
    """Two attention layers with skips, and a linear layer."""

    def __init__(self, kind: str = "sdpa", channels: int = 16, depth: int = 2) -> None:
        super().__init__()
        self.layers = nn.ModuleList(KINDS[kind](channels) for _ in range(depth))
        self.last = nn.Linear(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        """Return tokens `[B, N, C]` for tokens."""
        for layer in self.layers:
            x = x + layer(x)
        y: Tensor = self.last(x)
        return y


class Encoder(nn.Module):
    """A transformer encoder of torch's own, with its fast path."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True), 2)

    def forward(self, x: Tensor) -> Tensor:
        """Return tokens `[B, N, C]` for tokens."""
        y: Tensor = self.encoder(x)
        return y


class Heads(nn.Module):
    """`nn.MultiheadAttention` with its fast path, and a head of zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.head = nn.Linear(16, 4)
        nn.init.zeros_(self.head.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Return `[B, N, 4]` for tokens."""
        y: Tensor = self.head(self.attention(x, x, x, need_weights=False)[0])
        return y


def plain() -> nn.Module:
    """Return a model without attention."""
    return nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))


def right(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Compute the core."""
    return F.scaled_dot_product_attention(q, k, v, scale=scale)


def wrong(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Compute the core with a mask that wasn't requested."""
    return F.scaled_dot_product_attention(q, k, v, scale=scale, is_causal=True)


def with_mask(q: Tensor, k: Tensor, v: Tensor, scale: float, *, attn_mask: Tensor | None = None) -> Tensor:
    """Compute the core with a mask tensor."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask, scale=scale)


def inputs() -> dict[str, Tensor]:
    """Return the inputs of a model by name."""
    return {"x": torch.randn(2, 5, 16)}
