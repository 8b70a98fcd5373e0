"""Reject layers whose own output isn't finite, because nothing can be compared with it."""

from collections.abc import Sequence

from torch import Tensor

from bench.measure.workload import Workload
from bench.plan.errors import NOT_FINITE
from impls.contract import Unsupported


def check(workload: Workload, tensors: Sequence[Tensor], words: str) -> None:
    """Raise Unsupported if the layer's output, or a gradient, has values that aren't finite; the message counts them.

    `tensors` are in the order of the workload's names; `words` name the inputs.
    """
    for name, tensor in zip(workload.names, tensors, strict=False):
        if not is_finite(tensor):
            dtype = str(tensor.dtype).removeprefix("torch.")
            raise Unsupported(f"the layer's own {name} {NOT_FINITE}: {_counted(tensor)} ({words}, {dtype})")


def is_finite(tensor: Tensor) -> bool:
    """Return whether all numbers of a tensor are finite."""
    return bool(tensor.isfinite().all())


def _counted(tensor: Tensor) -> str:
    counts = {"NaN": int(tensor.isnan().sum()), "infinite": int(tensor.isinf().sum())}
    words = " and ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)
    return f"{words} of {tensor.numel():,} values"
