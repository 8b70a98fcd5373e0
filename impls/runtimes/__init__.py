"""Implementations in other runtimes, and their base class `Runtime`; each imports its runtime when it is built."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from impls.contract import Unsupported

DTYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}
"""torch's names of dtypes by the runtimes' short names."""


@dataclass(frozen=True)
class Operator:
    """An operator that a runtime reports, and the dtype in which it computes: torch's name, empty if it is unknown."""

    name: str
    dtype: str = ""


class Runtime(ABC):
    """A layer in another runtime, for inference, built for the shapes and dtypes of its first call.

    A subclass is an adapter, because its constructor takes the layer. It defines `compile`, `run`, and `operators` if
    the runtime reports them.
    `title` is the runtime's name in messages.
    """

    title = "this runtime"

    def __init__(self, layer: nn.Module) -> None:
        self.layer = layer
        self._form: list[tuple[torch.Size, torch.dtype]] = []

    @abstractmethod
    def compile(self, *xs: Tensor) -> None:
        """Build the layer for inputs like these, without gradients and outside inference mode."""

    @abstractmethod
    def run(self, *xs: Tensor) -> Tensor:
        """Return the output for inputs with the shapes and dtypes for which the layer was built."""

    def operators(self) -> Sequence[Operator]:
        """Return the operators of a call, in order; empty if the runtime doesn't report them."""
        return ()

    def build(self, *xs: Tensor) -> None:
        """Build the layer for inputs like these. Raises Unsupported if gradients are on, and the runtime's errors."""
        if torch.is_grad_enabled():
            raise Unsupported(f"{self.title} is used only for inference")
        with torch.inference_mode(False), torch.no_grad():
            self.compile(*(torch.zeros(x.shape, dtype=x.dtype, device=x.device) for x in xs))
        self._form = [(x.shape, x.dtype) for x in xs]

    def __call__(self, *xs: Tensor) -> Tensor:
        """Return the layer's output."""
        if [(x.shape, x.dtype) for x in xs] != self._form:
            self.build(*xs)
        return self.run(*xs)
