"""Whether a layer changes its input in place, and where: then no two calls have the same input."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from bench.measure import user_code
from impls.contract import Unsupported


def check(layer: nn.Module, xs: Sequence[Tensor]) -> None:
    """Raise `impls.Unsupported`, with the place, if a layer changes its input in place."""
    own, again = (tuple(x.clone() for x in xs) for _ in range(2))
    with suppress(Exception), torch.no_grad():  # what it raises is said elsewhere
        layer(*own)
    if all(map(torch.equal, own, xs)):
        return
    writes = _Writes(again)
    with suppress(Exception), torch.no_grad(), writes:
        layer(*again)
    raise Unsupported(f"the layer changes its input in place{writes.place}; outputs are compared for the same input")


class _Writes(TorchDispatchMode):
    """Notes the first place at which an operator writes into one of some tensors."""

    def __init__(self, xs: Sequence[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own
        self._storages = {x.untyped_storage().data_ptr() for x in xs}
        self.place = ""

    def __torch_dispatch__(
        self, func: Any, _types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Compute an operator, and note its place if it writes into one of the tensors."""
        given = zip(func._schema.arguments, args, strict=False)
        written = (each for argument, each in given if argument.alias_info and argument.alias_info.is_write)
        if any(isinstance(each, Tensor) and each.untyped_storage().data_ptr() in self._storages for each in written):
            self.place = self.place or user_code.place(sys._getframe(1))
        return func(*args, **(kwargs or {}))
