"""Attention cores as models write them out: cores that SDPA can express, and cores that it can't."""

import functools
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor, nn

from bench.modules.graph.tracing import Traced, traced

B, H, N, D = 4, 2, 6, 8
"""The sizes of queries; 4 items are two images of 2 windows."""

RNG = torch.Generator().manual_seed(3)
BIAS = torch.randn(1, H, N, N, generator=RNG)
WINDOWS = torch.where(torch.rand(2, N, N, generator=RNG) < 0.3, -100.0, 0.0)
HIDDEN = torch.rand(B, 1, 1, N, generator=RNG) < 0.3
HIDDEN[..., 0] = False
CAUSAL = torch.ones(N, N, dtype=torch.bool).tril()
WITHOUT_KEYS = HIDDEN | HIDDEN.mT
TEMPERATURE = torch.rand(H, 1, 1, generator=RNG) * 5 + 5
RELATIVE = torch.randn(N, D, generator=RNG)
HEADS = torch.randn(H, H, generator=RNG)
GATE = torch.rand(1, H, N, N, generator=RNG)
SLOPES = 2.0 ** -torch.arange(1, H + 1)[:, None, None]
DISTANCE = -(torch.arange(N)[:, None] - torch.arange(N)).abs().float()

LEARNED = nn.Parameter(BIAS[0])
TABLE, PLACES = nn.Parameter(torch.randn(2 * N - 1, generator=RNG)), torch.arange(N)[:, None] - torch.arange(N) + N - 1
LEARNED_TEMPERATURE = nn.Parameter(TEMPERATURE)

Core = Callable[[Tensor, Tensor, Tensor], Tensor]


def scores_of(q: Tensor, k: Tensor) -> Tensor:
    """Return scaled scores [B, H, N, N]."""
    return q @ k.mT / math.sqrt(D)


def two_masks(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Add a bias, then the mask of shifted windows, as Swin does."""
    scores = q * D**-0.5 @ k.transpose(-2, -1) + BIAS
    scores = scores.view(B // 2, 2, H, N, N) + WINDOWS.unsqueeze(1).unsqueeze(0)
    o: Tensor = scores.view(-1, H, N, N).softmax(-1) @ v
    return o


def flat(tensor: Tensor) -> Tensor:
    """Return a tensor without its dimension of heads."""
    return tensor.flatten(0, 1)


def three_dimensions(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Take heads and items together."""
    return torch.bmm(torch.bmm(flat(q), flat(k).mT).mul(D**-0.5).softmax(-1), flat(v)).view_as(q)


def alibi(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Add a distance in the product, as BLOOM does."""
    bias = (SLOPES * DISTANCE).repeat(B, 1, 1)
    scores = bias.baddbmm(flat(q), flat(k).mT, beta=1.0, alpha=D**-0.5).view(B, H, N, N)
    weights = F.softmax(scores.masked_fill(~CAUSAL, torch.finfo(q.dtype).min), dim=-1, dtype=torch.float32)
    return torch.bmm(flat(weights.to(q.dtype)), flat(v)).view_as(q)


def in_place(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Change scores in place."""
    scores = q @ k.mT
    scores *= D**-0.5
    scores += BIAS
    scores.masked_fill_(HIDDEN, float("-inf"))
    return scores.softmax(-1) @ v


def images(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Have five dimensions, as windows of images do."""
    q, k, v = (each.unflatten(0, (2, 2)) for each in (q, k, v))
    scores = torch.einsum("bghid,bghjd->bghij", q, k) * D**-0.5 + BIAS[0] + WINDOWS[:, None]
    return torch.einsum("bghij,bghjd->bghid", scores.softmax(-1), v).flatten(0, 1)


def cosine(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Multiply by a temperature of each head, as Swin V2 does."""
    scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT * TEMPERATURE
    return (scores + BIAS).softmax(-1) @ v


def one_query(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Have the first token ask alone, as a class token does."""
    return (scores_of(q[:, :, :1], k) + BIAS[:, :, :1]).softmax(-1) @ v + 0 * q


def shared_keys(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Have one head of keys for all of queries, with a bias of each head."""
    scores = torch.einsum("bhid,bjd->bhij", q, k[:, 0]) * D**-0.5 + BIAS
    return torch.einsum("bhij,bjd->bhid", scores.softmax(-1), v[:, 0])


def one_by_one(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Add a mask in which 1 means that a key takes part, as older models of texts do."""
    return (scores_of(q, k) + (1.0 - (~HIDDEN).float()) * -10000.0).softmax(-1) @ v


def zero_after(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Hide keys, and set their weights to zero once more."""
    weights = scores_of(q, k).masked_fill(HIDDEN, -1e9).softmax(-1).masked_fill(HIDDEN, 0.0)
    return weights @ v


def changed_later(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Add to the output in place."""
    o = scores_of(q, k).softmax(-1) @ v
    o += v
    return o


def of_rows_and_columns(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Add a bias of rows and one of columns of an image to a part of the scores that is all of them, as MViT does."""
    rows, columns = q @ RELATIVE[:2].mT, q @ RELATIVE[:3].mT
    scores = scores_of(q, k)
    by_place = scores[..., 0:, 0:].view(B, H, N, 2, N // 2) + rows[..., None] + columns[..., None, :]
    scores[..., 0:, 0:] = by_place.view(B, H, N, N)
    return scores.softmax(-1) @ v


def like_scores(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Take the shape of scores for two masks, as XLM does."""
    scores = scores_of(q, k)
    hidden = HIDDEN.expand_as(scores)
    later = torch.zeros_like(scores).masked_fill(~CAUSAL, float("-inf"))
    return (scores.masked_fill(hidden, -1e9) + later).softmax(-1) @ v


def cached(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Write keys and values into a part of a cache, and read them there."""
    keys, values = (torch.zeros(B, H, 2 * N, D, dtype=q.dtype) for _ in range(2))
    keys[:, :, :N], values[:, :, :N] = k, v
    return scores_of(q, keys[:, :, :N]).softmax(-1) @ values[:, :, :N]


EXPRESSIBLE: dict[str, Core] = {
    "plain": lambda q, k, v: (q @ k.mT * D**-0.5).softmax(-1) @ v,
    "root": lambda q, k, v: scores_of(q, k).softmax(-1) @ v,
    "query scaled": lambda q, k, v: ((q * D**-0.5) @ k.mT).softmax(-1) @ v,
    "no scale": lambda q, k, v: (q @ k.mT).softmax(-1) @ v,
    "einsum": lambda q, k, v: torch.einsum(
        "bhij,bhjd->bhid", (torch.einsum("bhid,bhjd->bhij", q, k) * 0.3).softmax(-1), v
    ),
    "in float32": lambda q, k, v: F.softmax(scores_of(q, k), -1, dtype=torch.float32).to(q.dtype) @ v,
    "bias": lambda q, k, v: torch.add(scores_of(q, k), BIAS, alpha=2).softmax(-1) @ v,
    "learned bias": lambda q, k, v: (scores_of(q, k) + LEARNED).softmax(-1) @ v,
    "gathered bias": lambda q, k, v: (scores_of(q, k) + TABLE[PLACES]).softmax(-1) @ v,
    "learned bias and mask": lambda q, k, v: (
        (scores_of(q, k) + LEARNED).masked_fill(HIDDEN, float("-inf")).softmax(-1) @ v
    ),
    "learned temperature": lambda q, k, v: (q @ k.mT / LEARNED_TEMPERATURE).softmax(-1) @ v,
    "bias first": lambda q, k, v: ((q @ k.mT + BIAS) * 0.5).softmax(-1) @ v,
    "boolean mask": lambda q, k, v: scores_of(q, k).masked_fill(HIDDEN, float("-inf")).softmax(-1) @ v,
    "mask that shows": lambda q, k, v: torch.where(~HIDDEN, scores_of(q, k), -1e9).softmax(-1) @ v,
    "mask that hides": lambda q, k, v: torch.where(HIDDEN, -1e9, scores_of(q, k)).softmax(-1) @ v,
    "bias and boolean mask": lambda q, k, v: (scores_of(q, k) + BIAS).masked_fill(HIDDEN, -1e4).softmax(-1) @ v,
    "two boolean masks": lambda q, k, v: (
        scores_of(q, k).masked_fill(HIDDEN, -1e9).masked_fill(~CAUSAL, -1e9).softmax(-1) @ v
    ),
    "mask by a tensor": lambda q, k, v: (
        torch.where(CAUSAL, scores_of(q, k), torch.tensor(torch.finfo(q.dtype).min, dtype=q.dtype)).softmax(-1) @ v
    ),
    "mask by many numbers": lambda q, k, v: (
        torch.where(CAUSAL, scores_of(q, k), torch.full_like(scores_of(q, k), -1e9)).softmax(-1) @ v
    ),
    "causal": lambda q, k, v: torch.where(CAUSAL, scores_of(q, k), float("-inf")).softmax(-1) @ v,
    "causal that is added": lambda q, k, v: (
        (scores_of(q, k) + torch.full((N, N), float("-inf")).triu(1)).softmax(-1) @ v
    ),
    "relative": lambda q, k, v: (scores_of(q, k) + q @ RELATIVE.mT).softmax(-1) @ v,
    "far limit": lambda q, k, v: scores_of(q, k).clamp(-65000, 65000).softmax(-1) @ v,
    "dropout that is off": lambda q, k, v: F.dropout(scores_of(q, k).softmax(-1), 0.1, training=False) @ v,
    "learned number": lambda q, k, v: (q @ k.mT / torch.full((1,), 2.5)).softmax(-1) @ v,
    "two masks": two_masks,
    "three dimensions": three_dimensions,
    "alibi": alibi,
    "in place": in_place,
    "images": images,
    "cosine": cosine,
    "one query": one_query,
    "shared keys": shared_keys,
    "mask of ones": one_by_one,
    "zero after": zero_after,
    "changed later": changed_later,
    "like scores": like_scores,
    "rows and columns": of_rows_and_columns,
    "cached": cached,
    "no key": lambda q, k, v: scores_of(q, k).masked_fill(WITHOUT_KEYS, -1e9).softmax(-1) @ v,
    "bias and no key": lambda q, k, v: (scores_of(q, k) + BIAS).masked_fill(WITHOUT_KEYS, -1e9).softmax(-1) @ v,
}
"""Cores whose line to paste computes the same."""


FROM_KEY_TO_KEY = "a factor that differs from key to key"


def top_k(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Keep the largest scores of each query."""
    scores = scores_of(q, k)
    least = scores.topk(3, dim=-1).values[..., -1:]
    return scores.masked_fill(scores < least, float("-inf")).softmax(-1) @ v


def top_k_scattered(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Put the softmax of the largest scores in their places."""
    values, places = scores_of(q, k).topk(3, dim=-1)
    return torch.zeros(B, H, N, N, dtype=q.dtype).scatter(-1, places, values.softmax(-1)) @ v


def talking_heads(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Mix heads before and after the softmax."""
    scores = F.linear(scores_of(q, k).permute(0, 2, 3, 1), HEADS).permute(0, 3, 1, 2)
    return F.conv2d(scores.softmax(-1), HEADS[..., None, None]) @ v


def slots(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Have keys choose queries, then normalise over keys, as slot attention does."""
    weights = scores_of(q, k).softmax(-2)
    return weights / (weights.sum(-1, keepdim=True) + 1e-8) @ v


def normalised_again(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Normalise over queries after the softmax."""
    weights = scores_of(q, k).softmax(-1)
    return weights / (1e-9 + weights.sum(-2, keepdim=True)) @ v


def threshold(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Leave out small weights."""
    weights = scores_of(q, k).softmax(-1)
    return torch.where(weights < 1 / N, torch.zeros_like(weights), weights) @ v


def soft_cap(q: Tensor, k: Tensor, v: Tensor, cap: float = 5.0) -> Tensor:
    """Keep scores below a cap, as Gemma 2 does."""
    return (torch.tanh(scores_of(q, k) / cap) * cap).softmax(-1) @ v


def some_alone(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Add a bias to the scores of some keys alone."""
    scores = scores_of(q, k)
    scores[..., 1:] += BIAS[..., 1:]
    return scores.softmax(-1) @ v


def used_later(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Use the weights a second time, which a fused core doesn't have."""
    weights = scores_of(q, k).softmax(-1)
    o = weights @ v
    return o * weights.amax(-1, keepdim=True)


def difference(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Subtract other weights."""
    return (scores_of(q, k).softmax(-1) - 0.5 * scores_of(k, q).softmax(-1)) @ v


INEXPRESSIBLE: dict[str, tuple[Core, str]] = {
    "soft cap": (soft_cap, "tanh"),
    "cap": (lambda q, k, v: scores_of(q, k).clamp(-5, 5).softmax(-1) @ v, "clamp"),
    "gate": (lambda q, k, v: scores_of(q, k).softmax(-1) * GATE @ v, "mul on the weights"),
    "gate of scores": (lambda q, k, v: (scores_of(q, k) * GATE).softmax(-1) @ v, FROM_KEY_TO_KEY),
    "gate by itself": (lambda q, k, v: (scores_of(q, k) * scores_of(q, k).sigmoid()).softmax(-1) @ v, FROM_KEY_TO_KEY),
    "weight of heads": (lambda q, k, v: scores_of(q, k).softmax(-1) * TEMPERATURE @ v, "mul on the weights"),
    "threshold": (threshold, "lt on the weights"),
    "top-k": (top_k, "lt"),
    "top-k, scattered": (top_k_scattered, "changes the number of scores"),
    "talking heads": (talking_heads, "over a layer's output"),
    "slots": (slots, "keys must be in the last"),
    "normalised again": (normalised_again, "sum on the weights"),
    "over queries": (lambda q, k, v: scores_of(q, k).softmax(-2) @ v, "keys must be in the last"),
    "dropout": (lambda q, k, v: F.dropout(scores_of(q, k).softmax(-1), 0.5, training=True) @ v, "dropout"),
    "power": (lambda q, k, v: scores_of(q, k).softmax(-1).square() @ v, "square on the weights"),
    "two softmaxes": (lambda q, k, v: scores_of(q, k).softmax(-1).softmax(-1) @ v, "softmax on the weights"),
    "mask that hides little": (
        lambda q, k, v: scores_of(q, k).masked_fill(HIDDEN, -5.0).softmax(-1) @ v,
        FROM_KEY_TO_KEY,
    ),
    "weights without some": (
        lambda q, k, v: scores_of(q, k).softmax(-1).masked_fill(HIDDEN, 0.0) @ v,
        "masked_fill on the weights",
    ),
    "some scores alone": (some_alone, "changed in place"),
    "used later": (used_later, "its weights are used again"),
    "difference": (difference, "on the weights"),
    "no softmax": (lambda q, k, v: scores_of(q, k).sigmoid() @ v, ""),
    "relu": (lambda q, k, v: scores_of(q, k).relu() / N @ v, ""),
}
"""Cores that compute something else, with the obstacle; empty if there is no softmax."""


class Written(nn.Module):
    """A layer of tokens [4, 6, 16] around one of these cores."""

    def __init__(self, kind: str = "plain") -> None:
        super().__init__()
        self.qkv = nn.Linear(H * D, 3 * H * D)
        self.core = EXPRESSIBLE.get(kind) or INEXPRESSIBLE[kind][0]

    def forward(self, x: Tensor) -> Tensor:
        """Return tokens `[B, N, C]` for tokens."""
        q, k, v = self.qkv(x).unflatten(2, (3, H, D)).permute(2, 0, 3, 1, 4)
        return self.core(q, k, v).transpose(1, 2).flatten(2)


@functools.cache
def traced_layer(kind: str) -> tuple[Written, Tensor, Traced]:
    """Return a layer around one of these cores, an input whose scores are peaked, and the graph of its call."""
    torch.manual_seed(0)
    layer, x = Written(kind), 2 * torch.randn(B, N, H * D)
    return layer, x, traced(layer, (x,))
