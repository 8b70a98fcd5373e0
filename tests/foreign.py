"""Implementations as a user might bring them: good ones, wrong ones, and ones that misbehave."""

import copy
import gc
import os

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from impls import Implementation, Unsupported, with_attend
from impls.contract import compiling
from impls.layers.vit import ViTAttention
from tests.make.adapters import Own, each_call, honest


def twin_attend(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Return what eager returns, from a function of its own."""
    return ((q * scale) @ k.transpose(-2, -1)).softmax(dim=-1) @ v


twin = with_attend(twin_attend)
copying = with_attend(lambda q, k, v, scale: twin_attend(q, k, v, scale).clone())
"""Returns the same, and copies what needs no copy."""


@each_call
def wrong(own: Own, x: Tensor) -> Tensor:
    """Returns the layer's output made a little too large."""
    return own(x) * 1.01


@each_call
def raises(own: Own, x: Tensor) -> Tensor:
    """Raises when called."""
    raise RuntimeError("this kernel is not for today")


@each_call
def raises_later(own: Own, x: Tensor) -> Tensor:
    """Is right at first and raises in the rounds, which run without garbage collection."""
    if not gc.isenabled():
        raise RuntimeError("tired")
    return own(x)


exits = honest(lambda: os._exit(1))
"""Ends its process."""


@each_call
def hungry(own: Own, x: Tensor) -> Tensor:
    """Asks for more memory than any machine has."""
    return torch.empty(1 << 60, dtype=torch.uint8)


@each_call
def talkative(own: Own, x: Tensor) -> Tensor:
    """Prints to standard output, where the worker's protocol runs."""
    os.write(1, b'{"event": "sample"}\n')
    print("hello", flush=True)
    return own(x)


def refused_attend(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Request something from a backend of SDPA that it can't do."""
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return F.scaled_dot_product_attention(q, k, v, dropout_p=0.1, scale=scale)


refused = with_attend(refused_attend)


def unsupported(layer: nn.Module) -> Implementation:
    """Refuse every layer."""
    raise Unsupported("not this layer")


def _given_up(layer: nn.Module, channels: int) -> nn.Module:
    """Return the layer compiled for more shapes than torch.compile allows, so that it gives up."""
    own = copy.copy(layer)
    own.compile(dynamic=False, backend="eager")
    for tokens in range(100, 101 + torch._dynamo.config.recompile_limit):
        own(torch.zeros(1, tokens, channels))
    return own


@each_call
def overworked(own: Own, x: Tensor) -> Tensor:
    """Returns the output of the layer compiled for ever new shapes, without a word of it."""
    own.kept["layer"] = own.kept.get("layer") or _given_up(own.layer, x.shape[-1])
    y: Tensor = own.kept["layer"](x)
    return y


@compiling
def exhausted(layer: nn.Module) -> Implementation:
    """Return the layer after torch.compile has given up on it because of too many shapes."""
    assert isinstance(layer, ViTAttention)
    with torch.inference_mode():
        return _given_up(layer, layer.qkv.in_features)


def joined_stream(layer: nn.Module) -> Implementation:
    """Compute on a stream of its own, for which the current one waits."""
    stream = torch.cuda.Stream()

    def call(x: Tensor) -> Tensor:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            y: Tensor = layer(x)
        torch.cuda.current_stream().wait_stream(stream)
        return y

    return call
