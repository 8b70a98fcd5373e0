"""Implementations as a user might bring them: good ones, wrong ones, and ones that misbehave."""

import copy
import ctypes
import gc
import os
import signal
import time

import torch
from torch import Tensor, nn

from impls import Implementation, with_attend
from impls.contract import compiling
from impls.layers.vit import ViTAttention


def twin_attend(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Return what eager returns, from a function of its own."""
    return ((q * scale) @ k.transpose(-2, -1)).softmax(dim=-1) @ v


twin = with_attend(twin_attend)


def reuses(layer: nn.Module) -> Implementation:
    """Return the layer's output as a view of a buffer that every call writes anew."""
    buffer: list[Tensor] = []

    def call(x: Tensor) -> Tensor:
        y: Tensor = layer(x)
        if not buffer:
            buffer.append(torch.empty(2 * y.numel(), dtype=y.dtype))
        return buffer[0][: y.numel()].view_as(y).copy_(y)

    return call


def wrong(layer: nn.Module) -> Implementation:
    """Return the layer's output made a little too large."""
    return lambda x: layer(x) * 1.01


def raises(layer: nn.Module) -> Implementation:
    """Return a callable that raises when called."""

    def call(x: Tensor) -> Tensor:
        raise RuntimeError("this kernel is not for today")

    return call


def raises_later(layer: nn.Module) -> Implementation:
    """Return a callable that is right at first and raises in the rounds, which run without garbage collection."""

    def call(x: Tensor) -> Tensor:
        if not gc.isenabled():
            raise RuntimeError("tired")
        y: Tensor = layer(x)
        return y

    return call


def exits(layer: nn.Module) -> Implementation:
    """Return a callable that ends its process."""

    def call(x: Tensor) -> Tensor:
        os._exit(1)

    return call


def sleeps(layer: nn.Module) -> Implementation:
    """Return a callable that never comes back."""

    def call(x: Tensor) -> Tensor:
        while True:
            time.sleep(60)

    return call


def segfaults(layer: nn.Module) -> Implementation:
    """Return a callable that reads memory that isn't there."""

    def call(x: Tensor) -> Tensor:
        ctypes.string_at(0)
        return x

    return call


def stops(layer: nn.Module) -> Implementation:
    """Return a callable that stops its process, as Ctrl-Z does."""

    def call(x: Tensor) -> Tensor:
        os.kill(os.getpid(), signal.SIGSTOP)
        return x

    return call


def hungry(layer: nn.Module) -> Implementation:
    """Return a callable that asks for more memory than any machine has."""

    def call(x: Tensor) -> Tensor:
        return torch.empty(1 << 60, dtype=torch.uint8)

    return call


def talkative(layer: nn.Module) -> Implementation:
    """Return a callable that prints to standard output, where the worker's protocol runs."""

    def call(x: Tensor) -> Tensor:
        os.write(1, b'{"event": "visited"}\n')
        print("hello", flush=True)
        y: Tensor = layer(x)
        return y

    return call


def unsupported(layer: nn.Module) -> Implementation:
    """Refuse every layer."""
    from impls import Unsupported

    raise Unsupported("not this layer")


def overworked(layer: nn.Module) -> Implementation:
    """Return the layer compiled for ever new shapes without a word of it: torch.compile gives up at the first call."""
    own = copy.copy(layer)
    own.compile(dynamic=False, backend="eager")

    def call(x: Tensor) -> Tensor:
        for tokens in range(100, 101 + torch._dynamo.config.recompile_limit):
            own(x.new_zeros(1, tokens, x.shape[-1]))
        y: Tensor = own(x)
        return y

    return call


@compiling
def exhausted(layer: nn.Module) -> Implementation:
    """Return the layer compiled for so many shapes already that torch.compile has given up on it."""
    assert isinstance(layer, ViTAttention)
    own = copy.copy(layer)
    own.compile(dynamic=False, backend="eager")
    with torch.inference_mode():
        for tokens in range(100, 101 + torch._dynamo.config.recompile_limit):
            own(torch.zeros(1, tokens, layer.qkv.in_features))
    return own
