"""Implementations that misbehave in ways that only a GPU has."""

import torch
from torch import Tensor, nn

from impls import Implementation
from tests.adapters import Own, each_call


def side_stream(layer: nn.Module) -> Implementation:
    """Return a callable that computes on a stream of its own, which events on the current one don't time."""
    stream = torch.cuda.Stream()

    def call(x: Tensor) -> Tensor:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            y: Tensor = layer(x)
        return y

    return call


@each_call
def ruins_the_context(own: Own, x: Tensor) -> Tensor:
    """Reads beyond a tensor, after which the process can't use the GPU any more."""
    y = own(x)
    beyond = torch.full((1,), y.numel() + 1, device=y.device)
    return y + y.flatten()[beyond]
