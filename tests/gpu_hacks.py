"""Implementations that misbehave in ways that only a GPU has."""

import torch
from torch import Tensor, nn

from impls import Implementation


def side_stream(layer: nn.Module) -> Implementation:
    """Return a callable that computes on a stream of its own, which events on the current one don't time."""
    stream = torch.cuda.Stream()

    def call(x: Tensor) -> Tensor:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            y: Tensor = layer(x)
        return y

    return call


def ruins_the_context(layer: nn.Module) -> Implementation:
    """Return a callable that reads beyond a tensor, after which the process can't use the GPU any more."""

    def call(x: Tensor) -> Tensor:
        y: Tensor = layer(x)
        beyond = torch.full((1,), y.numel() + 1, device=y.device)
        return y + y.flatten()[beyond]

    return call
