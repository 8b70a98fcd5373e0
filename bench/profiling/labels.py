"""The labels that a profiled call carries: the call itself, and the stages of eager, which names none."""

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
"""What a function does up to the softmax; transposing and flattening there are views of every stage, and free."""

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
"""What a function does once there are weights."""

CONVOLUTION = {"patch": "patch embedding", "conv": "qkv projection"}
"""What the convolution of a layer does."""


def name(case: Case) -> str:
    """Return the label of one call of a case."""
    return f"{case.implementation} call"


@contextmanager
def call(case: Case) -> Iterator[None]:
    """Label one call of a case, to be run inside.

    `stepwise` labels its stages itself; those of `eager` are labelled by what its functions do, since labels in its
    own code would cost time in every measurement. Other implementations, and layers of the user's own, have steps
    without names here.
    """
    is_known = case.implementation == "eager" and case.point.layer in LAYERS
    with record_function(name(case)), Stages(case.point.layer) if is_known else nullcontext():
        yield


class Stages(TorchFunctionMode):
    """Labels every function that a layer in the origin's spelling calls with its stage, for one call."""

    def __init__(self, layer: str) -> None:
        super().__init__()
        self._stages = {**BEFORE, "conv2d": CONVOLUTION.get(layer, "")}

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Run the function, labelled if it belongs to a stage."""
        stage = self._stages.get(func.__name__)
        if stage == "softmax":
            self._stages = AFTER
        with record_function(stage) if stage else nullcontext():
            return func(*args, **(kwargs or {}))
