"""torch.compile around any implementation."""

import copy
from typing import Any

import torch
from torch import nn

from impls.contract import Adapt, Implementation, compiling


def compiled(adapt: Adapt, **options: Any) -> Adapt:
    """Return the adapter that compiles what `adapt` returns, with static shapes.

    `options` go to `torch.compile` as they are.
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
