"""Honest kernels that are unlike others: none may be blamed for the way in which it computes.

ALL has their names, IN_TRAINING the names of those with gradients.
"""

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor

from impls import Unsupported
from impls.attend.eager import attend as eager

ALL = (
    "allocates", "own_buffer", "constant_mask", "by_numpy", "by_pools", "by_c", "by_head", "by_rows", "own_gradient",
    "slow_at_first",
)  # fmt: skip
IN_TRAINING = ("allocates", "constant_mask", "by_head", "by_rows", "own_gradient")

SPARE_BYTES = 32 << 20


def _inference(q: Tensor) -> None:
    """Raise Unsupported for inputs with gradients."""
    if q.requires_grad:
        raise Unsupported("it has no gradients")


def allocates(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Write and free much memory in each call."""
    torch.zeros(SPARE_BYTES, dtype=torch.uint8)
    return eager(q, k, v, scale)


@cache
def _buffer(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    return torch.empty(shape, dtype=dtype)


def own_buffer(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Return the same buffer in each call."""
    _inference(q)
    return torch.matmul(((q * scale) @ k.mT).softmax(-1), v, out=_buffer((*q.shape[:-1], v.shape[-1]), q.dtype))


@cache
def _mask(queries: int, keys: int) -> Tensor:
    return torch.ones(queries, keys, dtype=torch.bool)


def constant_mask(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Keep a mask, which depends on the shape alone, from call to call."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=_mask(q.shape[-2], k.shape[-2]), scale=scale)


def by_numpy(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Compute in NumPy, whose products have threads of their own."""
    _inference(q)
    arrays = [each.float().numpy() for each in (q, k, v)]
    scores = arrays[0] * scale @ arrays[1].swapaxes(-2, -1)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return torch.from_numpy(weights / weights.sum(-1, keepdims=True) @ arrays[2]).to(q.dtype)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, initializer=partial(torch.set_num_threads, 1))


def by_pools(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Compute the heads in threads of Python, and wait for them."""
    _inference(q)
    parts = [each.chunk(2, dim=1) for each in (q, k, v)]

    def part(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        with torch.inference_mode():
            return eager(q, k, v, scale)

    return torch.cat([*_pool(torch.get_num_threads()).map(part, *parts)], dim=1)


_C = """
#include <math.h>
#include <stdlib.h>
void attend(const float *q, const float *k, const float *v, float *o, long items, long n, long m, long d, float scale) {
    #pragma omp parallel for schedule(dynamic)
    for (long row = 0; row < items * n; row++) {
        const float *own = q + row * d, *keys = k + row / n * m * d, *values = v + row / n * m * d;
        float *w = malloc(m * sizeof(float)), most = -INFINITY, sum = 0;
        for (long j = 0; j < m; j++) {
            float s = 0;
            for (long c = 0; c < d; c++) s += own[c] * keys[j * d + c];
            w[j] = s * scale;
            if (w[j] > most) most = w[j];
        }
        for (long c = 0; c < d; c++) o[row * d + c] = 0;
        for (long j = 0; j < m; j++) {
            w[j] = expf(w[j] - most);
            sum += w[j];
            for (long c = 0; c < d; c++) o[row * d + c] += w[j] * values[j * d + c];
        }
        for (long c = 0; c < d; c++) o[row * d + c] /= sum;
        free(w);
    }
}
"""


@cache
def _native() -> Callable[..., object]:
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "attend.c", Path(folder) / "attend.so"
        source.write_text(_C)
        flags = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC"]
        subprocess.run(["gcc", *flags, source, "-o", library, "-lm"], check=True)
        attend: Any = ctypes.CDLL(str(library)).attend
    attend.argtypes = [*[ctypes.c_void_p] * 4, *[ctypes.c_long] * 4, ctypes.c_float]
    return attend  # type: ignore[no-any-return]


def by_c(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Compute in C, in a parallel loop of OpenMP."""
    _inference(q)
    dtype = q.dtype
    q, k, v = (each.float().contiguous() for each in (q, k, v))
    o = torch.empty_like(q)
    addresses = (each.data_ptr() for each in (q, k, v, o))
    _native()(*addresses, q.shape[0] * q.shape[1], q.shape[2], k.shape[2], q.shape[3], scale)
    return o.to(dtype)


def by_head(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Compute one head after the other."""
    heads = zip(q.split(1, dim=1), k.split(1, dim=1), v.split(1, dim=1), strict=True)
    return torch.cat([eager(*each, scale) for each in heads], dim=1)


def by_rows(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Compute some queries after the others."""
    return torch.cat([F.scaled_dot_product_attention(rows, k, v, scale=scale) for rows in q.split(64, dim=-2)], dim=-2)


class _OwnGradient(torch.autograd.Function):
    """The plain formula with a backward pass of its own."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        """Return the output."""
        weights = ((q * scale) @ k.mT).softmax(-1)
        ctx.save_for_backward(q, k, v, weights)
        ctx.scale = scale
        return weights @ v

    @staticmethod
    def backward(ctx: Any, *directions: Tensor) -> Any:
        """Return the gradients of q, k and v."""
        q, k, v, weights = ctx.saved_tensors
        of_weights = directions[0] @ v.mT
        of_scores = weights * (of_weights - (of_weights * weights).sum(-1, keepdim=True)) * ctx.scale
        return of_scores @ k, of_scores.mT @ q, weights.mT @ directions[0], None


def own_gradient(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Compute gradients by a formula of its own."""
    return _OwnGradient.apply(q, k, v, scale)  # type: ignore[no-any-return,no-untyped-call]


_calls = iter(range(40))


def slow_at_first(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Compute twice in the first 40 calls."""
    if next(_calls, None) is not None:
        eager(q, k, v, scale)
    return eager(q, k, v, scale)
