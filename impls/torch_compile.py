"""torch.compile around any implementation."""

import copy
from typing import Any

import torch
from torch import nn

from impls.attend import eager, sdpa
from impls.contract import Adapt, Implementation, as_is, compiling


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


def _with_mode(adapt: Adapt) -> Adapt:
    """Return the adapter that compiles what `adapt` returns; its option `mode` is passed to `torch.compile`."""

    @compiling
    def adapt_in_mode(layer: nn.Module, *, mode: str | None = None) -> Implementation:
        return compiled(adapt, mode=mode)(layer)

    return adapt_in_mode


adapt = _with_mode(as_is)
adapt_eager = _with_mode(eager.adapt)
adapt_sdpa = _with_mode(sdpa.adapt)
