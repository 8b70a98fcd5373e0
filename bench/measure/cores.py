"""The cores that the reference puts into a layer, besides plain eager.

The ones for long sequences never hold all scores at once. Others find out whether a layer's own core is the plain
formula, and its largest logit.
"""

import math
import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from bench.modules.wrapper import inner_of
from bench.sampling.inputs import LONG_SCORES, ROWS
from impls.attend import eager, hide
from impls.contract import Attend, attribute, repeated, takes_core, with_attend
from impls.sameness import are_same
from impls.sdpa_calls import CORE_DIMENSIONS


def at_random_rows(number: int) -> Attend:
    """Return a core that computes `number` random rows of each head, the same in each call."""
    seed = random.SystemRandom().getrandbits(64)

    def attend(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        scale: float,
        *,
        mask: str | None = None,
        attn_mask: Tensor | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """Return the rows of `softmax((q·scale) kᵀ) v`, NaN elsewhere; shapes as in `impls.attend.eager`."""
        tokens = q.shape[-2]
        rows = sorted(random.Random(seed).sample(range(tokens), min(number, tokens)))  # noqa: S311 - no secret
        o = torch.full((*q.shape[:-1], v.shape[-1]), float("nan"), dtype=q.dtype, device=q.device)
        k, v = repeated(q, k, v) if enable_gqa else (k, v)
        o[..., rows, :] = _rows(q[..., rows, :], k, v, scale, mask, attn_mask, rows)
        return o

    return attend


def in_blocks(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float,
    *,
    mask: str | None = None,
    attn_mask: Tensor | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return `softmax((q·scale) kᵀ) v`, computed for some queries at a time; shapes as in `impls.attend.eager`."""
    tokens = q.shape[-2]
    size = max(1, LONG_SCORES // (q.shape[:-1].numel() // tokens * k.shape[-2]))
    blocks = [range(first, min(first + size, tokens)) for first in range(0, tokens, size)]
    k, v = repeated(q, k, v) if enable_gqa else (k, v)
    each = partial(checkpoint, _rows, use_reentrant=False) if torch.is_grad_enabled() else _rows  # imports the compiler
    parts = [each(q[..., rows.start : rows.stop, :], k, v, scale, mask, attn_mask, rows) for rows in blocks]
    return torch.cat(parts, dim=-2)


def _rows(
    q: Tensor, k: Tensor, v: Tensor, scale: float, mask: str | None, attn_mask: Tensor | None, rows: Sequence[int]
) -> Tensor:
    """Return the output for q, whose queries are these rows of the whole."""
    scores = (q * scale) @ k.transpose(-2, -1)
    if mask is not None:
        key = torch.arange(k.shape[-2], device=q.device)
        scores = scores.masked_fill(key > torch.tensor(rows, device=q.device)[:, None], float("-inf"))
    return hide(scores, None, _at(rows, attn_mask)).softmax(dim=-1) @ v


def _at(rows: Sequence[int], attn_mask: Tensor | None) -> Tensor | None:
    """Return these rows of a mask; unchanged if all rows are the same."""
    is_same = attn_mask is None or attn_mask.dim() == 1 or attn_mask.shape[-2] == 1
    return attn_mask if is_same else attn_mask[..., [*rows], :]  # type: ignore[index]


def is_plain(layer: nn.Module, xs: tuple[Tensor, ...]) -> bool:
    """Return whether a layer's core is its own `attend` and equals the plain formula on these inputs."""
    own: Any = attribute(inner_of(layer), "attend")
    if not takes_core(own):
        return False
    if getattr(own, "func", own) is eager.attend and {*getattr(own, "keywords", ())} <= {"mask"}:
        return True
    seen: list[bool] = []

    def attend(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        scale: float,
        *others: Any,
        mask: str | None = None,
        attn_mask: Tensor | None = None,
        enable_gqa: bool = False,
        **options: Any,
    ) -> Tensor:
        asked: dict[str, Any] = {} if attn_mask is None else {"attn_mask": attn_mask}
        asked |= {"enable_gqa": True} if enable_gqa else {}
        o: Tensor = own(q, k, v, scale, *others, **asked, **options)
        heads = q.shape[:2], k.shape[:2], v.shape[:2]
        is_usual = not others and not options and q.dim() == CORE_DIMENSIONS and (enable_gqa or len({*heads}) == 1)
        expected = eager.attend(q, k, v, scale, mask=mask, **asked) if is_usual else None
        seen.append(expected is not None and are_same(o, expected))
        return o

    try:
        with torch.no_grad():
            with_attend(attend)(layer)(*xs)
    except Exception:  # a later call of the layer raises it again
        return False
    return bool(seen) and all(seen)


class _Seen(Exception):  # noqa: N818 - the way out of a layer
    """Ends a call of the layer as soon as the largest logit is known."""


def largest_logit(layer: nn.Module, xs: tuple[Tensor, ...]) -> float:
    """Return the largest logit of the first ROWS queries in a layer's core; infinite if the core isn't called."""

    def attend(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        scale: float,
        *,
        mask: str | None = None,
        attn_mask: Tensor | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        q = q[..., :ROWS, :]
        k = repeated(q, k, v)[0] if enable_gqa else k
        attn_mask = _at(range(q.shape[-2]), attn_mask)
        scores = (q * scale).float() @ k.float().transpose(-2, -1)
        raise _Seen(float(hide(scores, mask, attn_mask).max()))

    try:
        with torch.inference_mode():
            with_attend(attend)(layer)(*xs)
    except _Seen as seen:
        return float(seen.args[0])
    return math.inf
