"""The labels of a profiled call: one for the whole call, and the stages of eager, whose code has none."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from torch.overrides import TorchFunctionMode
from torch.profiler import record_function

from bench.plan.case import Case
from bench.plan.layers import LAYERS

BEFORE = {
    "linear": "qkv projection",
    "reshape": "split heads",
    "permute": "split heads",
    "unbind": "split heads",
    "unflatten": "split heads",
    "unsqueeze": "split heads",
    "mul": "scale",
    "matmul": "scores",
    "arange": "mask",
    "gt": "mask",
    "masked_fill": "mask",
    "softmax": "softmax",
}
"""The stage of a function up to the softmax; transpose and flatten are free views there and have none."""

AFTER = {
    "matmul": "weighted values",
    "transpose": "merge heads",
    "flatten": "merge heads",
    "squeeze": "merge heads",
    "unflatten": "merge heads",
    "linear": "output projection",
    "mul": "skip",
    "add": "skip",
}
"""The stage of a function after the softmax."""

CONVOLUTION = {"patch": "patch embedding", "conv": "qkv projection"}
"""The stage of a layer's convolution."""


def name(case: Case) -> str:
    """Return the label of one call of a case."""
    return f"{case.implementation} call"


@contextmanager
def call(case: Case) -> Iterator[None]:
    """Label one call of a case, which is made inside this context.

    `stepwise` labels its stages itself. Those of `eager` follow from the functions that it calls, because labels in its
    code would take time in every measurement. Other implementations and a user's own layers get no stages.
    """
    is_known = case.implementation == "eager" and case.point.layer in LAYERS
    with record_function(name(case)), Stages(case.point.layer) if is_known else nullcontext():
        yield


class Stages(TorchFunctionMode):
    """Labels every function that `eager` calls for a layer with its stage."""

    def __init__(self, layer: str) -> None:
        super().__init__()
        self._stages = {**BEFORE, "conv2d": CONVOLUTION.get(layer, "")}

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Call the function, with a label if it belongs to a stage."""
        stage = self._stages.get(func.__name__)
        if stage == "softmax":
            self._stages = AFTER
        with record_function(stage) if stage else nullcontext():
            return func(*args, **(kwargs or {}))
