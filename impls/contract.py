"""The contract between a layer and the ways to compute it."""

import copy
from collections.abc import Callable

from torch import Tensor, nn

Attend = Callable[[Tensor, Tensor, Tensor, float], Tensor]
"""The core: `attend(q, k, v, scale) -> o` on `[B, H, N, D]`; k and v may differ in width."""

Implementation = Callable[[Tensor], Tensor]
"""What an adapter returns: the layer's function, computed in its own way with the layer's parameters."""

Adapt = Callable[[nn.Module], Implementation]
"""An implementation: takes the reference layer, returns a callable of the same function and parameters."""


class Unsupported(Exception):  # noqa: N818 - a status, not an error
    """Raised by an adapter that can't express the layer it was given; the message is the reason."""


def compiling(adapt: Adapt) -> Adapt:
    """Return the adapter with the mark that its layer is meant to be compiled: a silent eager run is a fallback."""
    adapt.compiles = True  # type: ignore[attr-defined]  # functions take attributes
    return adapt


def with_attend(attend: Attend) -> Adapt:
    """Return the adapter that computes a layer's core with `attend` and leaves the rest as it is.

    The adapted layer shares its parameters with the layer it came from, which is not changed.
    The adapter raises `Unsupported` for a layer whose core can't be replaced.
    """

    def adapt(layer: nn.Module) -> nn.Module:
        if not hasattr(layer, "attend"):
            raise Unsupported(f"{type(layer).__name__} has no attend to replace")
        adapted = copy.copy(layer)
        adapted._modules = dict(layer._modules)  # a core that is a module must not appear in the original
        vars(adapted).pop("attend", None)
        adapted.attend = attend  # type: ignore[assignment]  # a plain function, not a submodule
        return adapted

    return adapt
