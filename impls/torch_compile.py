"""torch.compile around a layer, as it is or with another core."""

import copy

from torch import nn

from impls.attend import eager, sdpa
from impls.contract import Adapt, Implementation, as_is


def _compiled(adapt: Adapt) -> Adapt:
    """Return the adapter that compiles the module that `adapt` returns, with static shapes and torch.compile's `mode`.

    It is compiled in place, because `torch.compile(module)` renames parameters.
    """

    def adapt_compiled(layer: nn.Module, *, mode: str | None = None) -> Implementation:
        own = copy.copy(adapt(layer))  # which may be the layer itself
        assert isinstance(own, nn.Module)
        own.compile(dynamic=False, mode=mode)
        return own

    return adapt_compiled


adapt = _compiled(as_is)
adapt_eager = _compiled(eager.adapt)
adapt_sdpa = _compiled(sdpa.adapt)
