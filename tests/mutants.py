"""Implementations that are wrong in ways that were seen in kernels: the gate must reject every one of them."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from impls import Implementation, with_attend
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


mean_of_values = with_attend(_mean_of_values)
missing_scale = with_attend(_without_scale)
swapped_tokens = with_attend(_with_swapped_tokens)
swapped_heads = with_attend(_with_swapped_heads)
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


def remembers(layer: nn.Module) -> Implementation:
    """Return the right output, and the same again without any work where the input is the same tensor."""
    last: list[Tensor] = []

    def call(x: Tensor) -> Tensor:
        if not last or last[0] is not x:
            last[:] = [x, layer(x)]
        return last[1]

    return call


def _values(layer: nn.Module, x: Tensor) -> Tensor:
    projection: Callable[[Tensor], Tensor] = layer.get_submodule("qkv")
    heads = int(layer.num_heads)  # type: ignore[arg-type]  # a plain attribute of the layer
    batch, tokens, _ = x.shape
    return projection(x).reshape(batch, tokens, 3, heads, -1).permute(2, 0, 3, 1, 4)[2]


ALL = (  # that the gate must see; what `remembers` does shows in its time
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
