"""Eyes on what torch runs beneath a call."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


@dataclass(frozen=True)
class Ran:
    """One operator that ran, and the shape of a tensor that it returned."""

    operator: str
    shape: tuple[int, ...]
    elements: int


class Watch(TorchDispatchMode):
    """Keeps every operator that runs inside it, a tensor of its results each."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.ran: list[Ran] = []

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run the operator and note what it returned."""
        result = func(*args, **(kwargs or {}))
        name = str(func).removeprefix("aten.").partition(".")[0]
        self.ran += [Ran(name, tuple(t.shape), t.numel()) for t in tree_leaves(result) if isinstance(t, Tensor)]
        return result

    def shapes(self, operator: str) -> list[tuple[int, ...]]:
        """Return the shapes that an operator returned, in the order in which it ran."""
        return [ran.shape for ran in self.ran if ran.operator == operator]
