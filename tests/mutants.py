"""Implementations that are wrong in ways that were seen in kernels: the check must reject every one of them."""

import sys
from collections.abc import Callable

import torch
from torch import Tensor, nn

from bench.measure import outputs
from impls import Adapt, Implementation, with_attend
from impls.layers.heads import merge_heads


def _mean_of_values(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    return v.mean(dim=-2, keepdim=True).expand_as(v) + 0 * (q * k).sum()


def _without_scale(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    return (q @ k.transpose(-2, -1)).softmax(dim=-1) @ v


def _with_swapped_heads(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    return ((q * scale) @ k.transpose(-2, -1)).softmax(dim=-1) @ v.flip(1)


def _with_swapped_tokens(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    return ((q * scale) @ k.transpose(-2, -1)).softmax(dim=-1) @ v.flip(2)


def _with_a_nan(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    output = ((q * scale) @ k.transpose(-2, -1)).softmax(dim=-1) @ v
    spoiled = torch.zeros_like(output)
    spoiled[-1, -1, -1, -1] = float("nan")
    return output + spoiled


def _without_its_mask(q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None = None) -> Tensor:
    return ((q * scale) @ k.transpose(-2, -1)).softmax(dim=-1) @ v


mean_of_values = with_attend(_mean_of_values)
missing_scale = with_attend(_without_scale)
swapped_tokens = with_attend(_with_swapped_tokens)
swapped_heads = with_attend(_with_swapped_heads)
ignores_the_mask = with_attend(_without_its_mask)
one_nan = with_attend(_with_a_nan)


def missing_skip(layer: nn.Module) -> Implementation:
    """Return the layer without the values that the skip adds."""

    def call(x: Tensor) -> Tensor:
        y: Tensor = layer(x)
        return y - merge_heads(_values(layer, x))

    return call


def zero_projection(layer: nn.Module) -> Implementation:
    """Return the skip alone, as if the output projection were zero."""
    return lambda x: merge_heads(_values(layer, x)) + 0 * layer(x)


def stale_output(layer: nn.Module) -> Implementation:
    """Return the output of the input before this one."""
    earlier: list[Tensor] = []

    def call(x: Tensor) -> Tensor:
        earlier.append(layer(x))
        return earlier[max(0, len(earlier) - 2)]

    return call


def edits_its_input(layer: nn.Module) -> Implementation:
    """Return the right output, and leave another input behind."""

    def call(x: Tensor) -> Tensor:
        y: Tensor = layer(x)
        with torch.no_grad():
            x.data[..., 0] += 1
        return y

    return call


def two_items(layer: nn.Module) -> Implementation:
    """Return the output of the first and the last item of the batch, and copies of the first for the others."""

    def call(x: Tensor) -> Tensor:
        y: Tensor = layer(x[[0, -1]])
        return torch.cat([y[:1].expand(len(x) - 1, *y.shape[1:]), y[1:]])

    return call


class _Lazy(Tensor):
    """A tensor that does its work when somebody looks at it."""


def lazy(layer: nn.Module) -> Implementation:
    """Return the right output in a tensor that could be computed later."""

    def call(x: Tensor) -> Tensor:
        y: Tensor = layer(x)
        return y.as_subclass(_Lazy)

    return call


def answers_by_address(layer: nn.Module) -> Implementation:
    """Return what was computed the first time that an input of this address and shape came."""
    answers: dict[tuple[int, torch.Size], Tensor] = {}

    def call(x: Tensor) -> Tensor:
        key = (x.data_ptr(), x.shape)
        if key not in answers:
            answers[key] = layer(x)
        return answers[key]

    return call


def works_no_more(layer: nn.Module) -> Implementation:
    """Return the right output during the correctness check, then the last one again and again, without work.

    Right answers of its own can't give it away: only its time can, or the values of its inputs.
    """
    calls: list[Tensor] = []

    def call(x: Tensor) -> Tensor:
        if len(calls) < CHECK_CALLS:
            calls.append(layer(x))
        return calls[-1]

    return call


def works_if_looked_at(layer: nn.Module) -> Implementation:
    """Return the right output in calls that are made for a check, and the last one without work if a timing calls."""
    answers: list[Tensor] = []

    def call(x: Tensor) -> Tensor:
        callers = {sys._getframe(depth).f_code.co_name for depth in (1, 2)}
        if not answers or outputs.compute.__name__ in callers:
            answers[:] = [layer(x)]
        return answers[0]

    return call


CHECK_CALLS = 4
"""More than the correctness check makes, and fewer than a warm-up."""


def _later(change: Callable[[nn.Module, Tensor], Tensor]) -> Adapt:
    """Return the adapter of a layer that is right for some calls, and changed from then on."""

    def adapt(layer: nn.Module) -> Implementation:
        calls = 0

        def call(x: Tensor) -> Tensor:
            nonlocal calls
            calls += 1
            y: Tensor = layer(x) if calls <= CHECK_CALLS else change(layer, x)
            return y

        return call

    return adapt


def _in_bfloat16(layer: nn.Module, x: Tensor) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        y: Tensor = layer(x)
    return y.to(x.dtype)


def _into_denormals(layer: nn.Module, x: Tensor) -> Tensor:
    y: Tensor = layer(x)
    x.data.mul_(1e-40)
    return y


def _with_other_weights(layer: nn.Module, x: Tensor) -> Tensor:
    y: Tensor = layer(x)
    with torch.no_grad():
        next(layer.parameters()).mul_(0.5)
    return y


nan_later = _later(lambda layer, x: layer(x) * float("nan"))
bfloat16_later = _later(_in_bfloat16)
denormal_input_later = _later(_into_denormals)
weights_later = _later(_with_other_weights)
a_view_of_its_input_later = _later(lambda _layer, x: x.view_as(x))

LATER = {
    "lazy": "output is a _Lazy, expected a plain torch.Tensor",
    "answers_by_address": "(in a timed call)",
    "works_no_more": "(in a timed call)",
    "nan_later": "output is not finite (in a timed call)",
    "bfloat16_later": "(in a timed call)",
    "denormal_input_later": "edited its input in place (in a timed call)",
    "weights_later": "edited the layer's weights (in a timed call)",
    "a_view_of_its_input_later": "output shares memory with its input or with a weight (in a timed call)",
}
"""Those that are right at first, and what is said of them."""

LATER_TOO = ("lazy", "nan_later", "bfloat16_later", "denormal_input_later")
"""Those of them that train as well."""


def _values(layer: nn.Module, x: Tensor) -> Tensor:
    projection: Callable[[Tensor], Tensor] = layer.get_submodule("qkv")
    heads = int(layer.num_heads)  # type: ignore[arg-type]  # a plain attribute of the layer
    batch, tokens, _ = x.shape
    return projection(x).reshape(batch, tokens, 3, heads, -1).permute(2, 0, 3, 1, 4)[2]


ALL = (
    "mean_of_values",
    "missing_scale",
    "missing_skip",
    "swapped_heads",
    "swapped_tokens",
    "zero_projection",
    "stale_output",
    "edits_its_input",
    "one_nan",
)
