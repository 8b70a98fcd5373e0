"""Implementations that are wrong in ways that were seen in kernels: the check must reject every one of them."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import elu

from impls import with_attend
from impls.attend.eager import attend
from tests.make.adapters import Own, each_call, later


def _with_a_nan(q: Tensor, k: Tensor, v: Tensor, scale: float, *, attn_mask: Tensor | None = None) -> Tensor:
    spoiled = torch.zeros_like(v)
    spoiled[-1, -1, -1, -1] = float("nan")
    return attend(q, k, v, scale, attn_mask=attn_mask) + spoiled


def _without_its_mask(
    q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None = None, attn_mask: Tensor | None = None
) -> Tensor:
    return attend(q, k, v, scale, attn_mask=attn_mask)


def _mean(q: Tensor, k: Tensor, v: Tensor, _scale: float, *, attn_mask: Tensor | None = None) -> Tensor:
    return v.mean(dim=-2, keepdim=True).expand_as(v) + 0 * (q * k).sum()


def _uniform(q: Tensor, k: Tensor, v: Tensor, scale: float, *, attn_mask: Tensor | None = None) -> Tensor:
    return attend(q, k, v, 0 * scale)


def _linear(q: Tensor, k: Tensor, v: Tensor, scale: float, *, attn_mask: Tensor | None = None) -> Tensor:
    """Return linear attention, Katharopoulos et al. 2020, with the scale on both queries and keys."""
    q, k = (1 + elu(each.float() * abs(scale) ** 0.5) for each in (q, k))
    weighted = q @ (k.mT @ v.float())
    return (weighted / (q @ k.sum(dim=-2, keepdim=True).mT)).to(v.dtype)


def _no_maximum(q: Tensor, k: Tensor, v: Tensor, scale: float, *, attn_mask: Tensor | None = None) -> Tensor:
    weights = ((q @ k.mT) * scale + (0 if attn_mask is None else attn_mask)).exp()
    return (weights / weights.sum(dim=-1, keepdim=True)) @ v


def _half_of_the_keys(q: Tensor, k: Tensor, v: Tensor, scale: float, *, attn_mask: Tensor | None = None) -> Tensor:
    half = (k.shape[-2] + 1) // 2
    bias = None if attn_mask is None else attn_mask[..., :half]
    return attend(q, k[..., :half, :], v[..., :half, :], scale, attn_mask=bias)


def _swapped_tokens(q: Tensor, k: Tensor, v: Tensor, scale: float, *, attn_mask: Tensor | None = None) -> Tensor:
    return attend(q, k, v.flip(2), scale, attn_mask=attn_mask)


mean_of_values = with_attend(_mean)
uniform_weights = with_attend(_uniform)
linear_attention = with_attend(_linear)
softmax_without_maximum = with_attend(_no_maximum)
half_of_the_keys = with_attend(_half_of_the_keys)
missing_scale = with_attend(lambda q, k, v, _scale: attend(q, k, v, 1.0))
swapped_heads = with_attend(lambda q, k, v, scale: attend(q, k, v.flip(1), scale))
swapped_tokens = with_attend(_swapped_tokens)
ignores_the_mask = with_attend(_without_its_mask)
one_nan = with_attend(_with_a_nan)


def _skip(own: Own, x: Tensor) -> Tensor:
    """Return the values that the vit layer adds to its output."""
    projection: Callable[[Tensor], Tensor] = own.layer.get_submodule("qkv")
    return projection(x).chunk(3, dim=-1)[2]


@each_call
def missing_skip(own: Own, x: Tensor) -> Tensor:
    """Return the layer's output without the values that the skip adds."""
    return own(x) - _skip(own, x)


@each_call
def zero_projection(own: Own, x: Tensor) -> Tensor:
    """Return the skip alone, as if the output projection were zero."""
    return _skip(own, x) + 0 * own(x)


@each_call
def stale_output(own: Own, x: Tensor) -> Tensor:
    """Return the output of the input before this one."""
    y = own(x)
    earlier: Tensor = own.kept.get("y", y)
    own.kept["y"] = y
    return earlier


@each_call
def edits_its_input(own: Own, x: Tensor) -> Tensor:
    """Return the right output, and leave another input behind."""
    y = own(x)
    with torch.no_grad():
        x.data[..., 0] += 1
    return y


def _into_denormals(own: Own, x: Tensor) -> Tensor:
    y = own(x)
    x.data.mul_(1e-40)
    return y


def _with_other_weights(own: Own, x: Tensor) -> Tensor:
    y = own(x)
    with torch.no_grad():
        next(own.layer.parameters()).mul_(0.5)
    return y


denormal_input_later = later(_into_denormals)
weights_later = later(_with_other_weights)
a_view_of_its_input_later = later(lambda _own, x: x.view_as(x))

NO_ATTENTION = (
    "mean_of_values", "uniform_weights", "linear_attention", "softmax_without_maximum", "half_of_the_keys"
)  # fmt: skip
"""Those that compute something else than attention, in the scale of attention's output."""

ALL = (
    "mean_of_values", "missing_scale", "missing_skip", "swapped_heads", "swapped_tokens", "zero_projection",
    "stale_output", "edits_its_input", "one_nan",
)  # fmt: skip
