"""Numbers of a layer's own output that aren't finite: how many, where, and in which operator they first appear.

Nothing can be compared with them: any number would be as right as any other.
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as modules
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bench.measure import user_code
from bench.measure.layer import Tensors
from bench.measure.place import place
from bench.measure.workload import Workload
from bench.modules.switches import OF_TORCH
from bench.plan.errors import NOT_FINITE
from impls.contract import Unsupported

NAN, INFINITY = "NaN", "infinity"

NOT_WRITTEN = "empty"
"""What is in the names of operators whose memory holds anything."""


def check(
    workload: Workload, layer: nn.Module, xs: Tensors, tensors: Sequence[Tensor], items: Sequence[int], words: str
) -> None:
    """Raise `impls.Unsupported` if the layer's output for inputs, or a gradient, is not finite.

    `tensors` are those of these items of the batch, in the order of the workload's names; `words` name the inputs.
    """
    for number, (name, tensor) in enumerate(zip(workload.names, tensors, strict=False)):
        if is_finite(tensor):
            continue
        where = of = ""
        if number < workload.by_item:
            where = place(~tensor.isfinite(), torch.ones_like(tensor, dtype=torch.bool), items)
            if len(items) < workload.point.batch:
                of = " of an item" if len(items) == 1 else f" of {len(items)} items"
        cause = cause_of(layer, xs, tensor) if number == 0 else "the output is finite"
        dtype = str(xs[0].dtype).removeprefix("torch.")
        raise Unsupported(
            f"the layer's own {name} {NOT_FINITE}: {counted(tensor)}{of}{', at ' * bool(where)}{where} "
            f"({words}, {dtype}); {cause}"
        )


def is_finite(tensor: Tensor) -> bool:
    """Return whether all numbers of a tensor are finite."""
    return bool(tensor.isfinite().all())


def counted(tensor: Tensor) -> str:
    """Return how many values of a tensor are not finite: `12 NaN of 480 values`."""
    counts = {"NaN": int(tensor.isnan().sum()), "infinite": int(tensor.isinf().sum())}
    words = " and ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)
    return f"{words} of {tensor.numel():,} values"


def cause_of(layer: nn.Module, xs: Tensors, output: Tensor) -> str:
    """Return where the numbers of an output that are not finite come from, as far as another call tells it."""
    for name, weight in layer.named_parameters():
        if not is_finite(weight):
            return f"neither is its weight {name.removeprefix('inner.')}: {counted(weight)}"
    finder = _Finder(layer)
    with torch.no_grad(), finder.watching():
        layer(*xs)
    words = finder.words(NAN if output.isnan().any() else INFINITY)
    if any(isinstance(each, OF_TORCH) for each in layer.modules()) and is_finite(_without_fast_path(layer, xs)):
        words += "; after torch.backends.mha.set_fastpath_enabled(False) it is finite"
    return words


def _without_fast_path(layer: nn.Module, xs: Tensors) -> Tensor:
    """Return the output of a layer without the fast path of torch's own modules."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad():
            output: Tensor = layer(*xs)
            return output
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


class _Finder(TorchDispatchMode):
    """Notes the first operator of a layer's call that makes NaN, and the first that makes infinity."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own
        self._paths = {each: path.removeprefix("inner").removeprefix(".") for path, each in layer.named_modules()}
        self._inside: list[nn.Module] = []
        self._found: dict[str, str] = {}

    def words(self, kind: str) -> str:
        """Return where NaN or infinity first appears, and where infinity does before NaN."""
        if kind not in self._found:
            return "no operator of another call shows where it comes from"
        before = kind == NAN and next(iter(self._found)) == INFINITY
        return f"{kind} first appears in {self._found[kind]}" + (
            f", after infinity in {self._found[INFINITY]}" if before else ""
        )

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note what is called inside."""
        hooks = (
            modules.register_module_forward_pre_hook(self._enter),  # of all modules: an own one ends torch's fast path
            modules.register_module_forward_hook(self._leave),
        )
        try:
            with self:
                yield
        finally:
            for hook in hooks:
                hook.remove()

    def _enter(self, module: nn.Module, _args: Any) -> None:
        self._inside.append(module)

    def _leave(self, module: nn.Module, _args: Any, _output: Any) -> None:
        while self._inside and self._inside.pop() is not module:  # one that raised has not left
            pass

    def __torch_dispatch__(
        self, func: Any, _types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Compute an operator, and note whether numbers that aren't finite come out and none came in."""
        given = tree_leaves((args, kwargs))
        had_nan, had_infinity = _has(given, torch.isnan), _has(given, torch.isinf)
        is_asked = any(isinstance(each, float) and math.isinf(each) for each in given)  # as a mask is filled
        output = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__.strip("_")
        if NOT_WRITTEN not in name:
            made = tree_leaves(output)
            if not had_nan and _has(made, torch.isnan):
                self._found.setdefault(NAN, self._place(name))
            elif not (had_nan or had_infinity or is_asked) and _has(made, torch.isinf):
                self._found.setdefault(INFINITY, self._place(name))
        return output

    def _place(self, name: str) -> str:
        """Return an operator with its line in the layer's own code, and its module."""
        line = user_code.place(sys._getframe(2))  # that of the caller of the operator
        module = next((each for each in reversed(self._inside) if self._paths.get(each)), None)
        return f"{name}{line}" + (f", in {self._paths[module]} ({type(module).__name__})" if module else "")


def _floating(values: Sequence[Any]) -> Iterator[Tensor]:
    return (each for each in values if isinstance(each, Tensor) and each.is_floating_point())


def _has(values: Sequence[Any], is_kind: Callable[[Tensor], Tensor]) -> bool:
    return any(bool(is_kind(each).any()) for each in _floating(values))
