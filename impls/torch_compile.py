"""torch.compile around any implementation."""

import copy
from typing import Any

import torch
from torch import nn

from impls.attend import eager, sdpa
from impls.contract import Adapt, Implementation, compiling


def compiled(adapt: Adapt, **options: Any) -> Adapt:
    """Return the adapter that compiles the implementation that `adapt` returns, with static shapes.

    `options` are passed to `torch.compile`.
    A module is compiled in place, because `torch.compile(module)` renames its parameters.
    """

    def adapt_compiled(layer: nn.Module) -> Implementation:
        implementation = adapt(layer)
        if isinstance(implementation, nn.Module):
            own = copy.copy(implementation)  # an adapter may have returned the layer itself
            own.compile(dynamic=False, **options)
            return own
        compiled_function: Implementation = torch.compile(implementation, dynamic=False, **options)
        return compiled_function

    return compiling(adapt_compiled)


@compiling
def adapt_eager(layer: nn.Module, *, mode: str | None = None) -> Implementation:
    """Return the layer with the core of `eager`, compiled; `mode` is passed to `torch.compile`."""
    return compiled(eager.adapt, mode=mode)(layer)


@compiling
def adapt_sdpa(layer: nn.Module, *, mode: str | None = None) -> Implementation:
    """Return the layer with the core of `sdpa`, compiled; `mode` is passed to `torch.compile`."""
    return compiled(sdpa.adapt, mode=mode)(layer)
