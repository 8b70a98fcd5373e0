"""Layers as a user might bring them: good ones, ones that state something, and ones that break the contract."""

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor, nn

from bench.plan.case import Point
from impls.attend import eager
from impls.contract import Unsupported, masked


class Mine(nn.Module):
    """A layer with a core that can be replaced, and with a mask."""

    def __init__(self, heads: int, embed_dim: int, token_len: int, mask: str = "none") -> None:
        super().__init__()
        self.qkv = nn.Linear(token_len, 3 * embed_dim)
        self.heads = heads
        self.mask = mask
        self.attend: Any = masked(eager.attend, mask)

    def forward(self, x: Tensor) -> Tensor:
        """Return `[B, N, embed_dim]` for x `[B, N, token_len]`."""
        q, k, v = self.qkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)  # each [B, H, N, D]
        o: Tensor = getattr(self, "attend", eager.attend)(q, k, v, 0.25)
        return o.transpose(1, 2).flatten(2)


class Whole(Mine):
    """The same without a core that can be replaced, and without a mask."""

    def __init__(self, heads: int, chan: int, dim: int) -> None:
        super().__init__(heads, chan, dim)
        del self.attend


class Stating(Whole):
    """A layer of maps that says so, and how many operations a call has."""

    def input_shape(self, point: Point) -> tuple[int, ...]:
        """Return `[B, 1, N, dim]`."""
        return point.batch, 1, point.num_tokens, point.token_len

    def flops(self, point: Point) -> int:
        """Return a number that isn't counted."""
        return 1000 * point.batch

    def forward(self, x: Tensor) -> Tensor:
        """Return `[B, N, chan]` for x `[B, 1, N, dim]`."""
        return super().forward(x.squeeze(1))


class OfValues(Whole):
    """A layer that looks at values, which a tensor without any doesn't have."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the whole layer's output, times 1 or 2."""
        return super().forward(x) * (1 if x.sum().item() < 1e9 else 2)


class Even(Whole):
    """A layer that refuses an odd number of tokens once it has seen values."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the whole layer's output."""
        if x.isfinite().all() and x.shape[1] % 2:
            raise Unsupported("needs an even number of tokens")
        return super().forward(x)


class Forgetful(Mine):
    """A layer that takes a mask and doesn't keep it."""

    def __init__(self, heads: int, chan: int, dim: int, mask: str) -> None:  # noqa: ARG002
        super().__init__(heads, chan, dim)


class Wide(Whole):
    """A layer that takes another width than x has."""

    def __init__(self, heads: int, chan: int, dim: int) -> None:
        super().__init__(heads, chan, dim + 1)


class Pair(Whole):
    """A layer that returns two tensors."""

    def forward(self, x: Tensor) -> Any:
        """Return the output twice."""
        return (super().forward(x),) * 2


class Turned(Whole):
    """A layer that returns its items in the second dimension."""

    def forward(self, x: Tensor) -> Tensor:
        """Return `[N, B, chan]`."""
        return super().forward(x).transpose(0, 1)


class Misstating(Whole):
    """A layer whose input has no batch."""

    def input_shape(self, point: Point) -> tuple[int, ...]:
        """Return `[N, dim]`."""
        return point.num_tokens, point.token_len


class OfTwenty(Whole):
    """A layer of twenty tokens."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the whole layer's output."""
        if x.shape[1] != 20:
            raise AssertionError("num_tokens must be 20")
        return super().forward(x)


class MultiThreaded(Whole):
    """A layer that changes how many threads everybody has."""

    def __init__(self, heads: int, chan: int, dim: int) -> None:
        super().__init__(heads, chan, dim)
        torch.set_num_threads(torch.get_num_threads() + 1)


class Crossed(nn.Module):
    """A layer with a context, from which keys and values come, and with a core that can be replaced."""

    def __init__(self, heads: int, chan: int, dim: int, context_dim: int) -> None:
        super().__init__()
        self.q, self.kv = nn.Linear(dim, chan), nn.Linear(context_dim, 2 * chan)
        self.heads = heads
        self.attend: Any = eager.attend

    def input_shapes(self, point: Any) -> tuple[tuple[int, ...], ...]:
        """Return `[B, N, dim]` and `[B, M, context_dim]`."""
        x = (point.batch, point.num_tokens, point.token_len)
        return x, (point.batch, point.num_kv_tokens, self.kv.in_features)

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        """Return `[B, N, chan]` for x `[B, N, dim]` and a context `[B, M, context_dim]`."""
        q = self.q(x).unflatten(2, (self.heads, -1)).transpose(1, 2)
        k, v = self.kv(context).unflatten(2, (2, self.heads, -1)).permute(2, 0, 3, 1, 4)  # each [B, H, M, D]
        o: Tensor = self.core(q, k, v)
        return o.transpose(1, 2).flatten(2)

    def core(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return `[B, H, N, D]`."""
        o: Tensor = self.attend(q, k, v, 0.5)
        return o


class Frozen(Crossed):
    """The same in a partly trained model: the first weight needs no gradient."""

    def __init__(self, heads: int, chan: int, dim: int, context_dim: int) -> None:
        super().__init__(heads, chan, dim, context_dim)
        next(self.parameters()).requires_grad_(False)


class CrossedBySDPA(Crossed):
    """The same with torch's function as the core."""

    def __init__(self, heads: int, chan: int, dim: int, context_dim: int) -> None:
        super().__init__(heads, chan, dim, context_dim)
        del self.attend

    def core(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return `[B, H, N, D]`."""
        return F.scaled_dot_product_attention(q, k, v, scale=0.5)


class Separate(nn.Module):
    """A layer with a weight for each of queries, keys and values, made in this order, and with a buffer."""

    def __init__(self, channels: int, num_heads: int) -> None:
        super().__init__()
        self.heads = num_heads
        for name in ("query", "key", "value"):
            self.add_module(name, nn.Linear(channels, channels))
        self.register_buffer("gain", 0.5 + torch.rand(channels))

    def forward(self, x: Tensor) -> Tensor:
        """Return `[B, N, channels]` for x `[B, N, channels]`."""
        projected = (self.get_submodule(name)(x) for name in ("query", "key", "value"))
        q, k, v = (each.unflatten(2, (self.heads, -1)).transpose(1, 2) for each in projected)
        o: Tensor = eager.attend(q, k, v, 0.25).transpose(1, 2).flatten(2)
        return o * self.get_buffer("gain")


class Skewed(Separate):
    """A layer that computes something else."""

    def forward(self, x: Tensor) -> Tensor:
        """Return `[B, N, channels]` for x `[B, N, channels]`."""
        return super().forward(x) * 1.01
