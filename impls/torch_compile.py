"""torch.compile of a layer, as it is or with another core."""

import copy

from torch import nn

from impls.attend import eager, sdpa
from impls.contract import Adapt, Implementation, as_is


def _compiled(adapt: Adapt) -> Adapt:
    """Return an adapter that compiles the module from `adapt`, with static shapes and torch.compile's `mode`.

    It compiles in place, because `torch.compile(module)` renames parameters.
    """

    def adapt_compiled(layer: nn.Module, *, mode: str | None = None) -> Implementation:
        own = copy.copy(adapt(layer))  # `adapt` may return the layer itself
        assert isinstance(own, nn.Module)
        own.compile(dynamic=False, mode=mode)
        return own

    return adapt_compiled


adapt = _compiled(as_is)
adapt_eager = _compiled(eager.adapt)
adapt_sdpa = _compiled(sdpa.adapt)
