"""The outputs of an implementation: compute them, check their form, and hand them over to the judge.

The process of an implementation never holds an expected output, so the judge compares the numbers.
"""

import copy
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bench.measure.layer import TRAINED, Tensors
from bench.measure.subjects import Subject
from bench.measure.workload import Workload
from bench.sampling.inputs import TimedCall


class Incorrect(Exception):  # noqa: N818 - an outcome that becomes a row
    """The output can't be the layer's; the message says why."""


class Fallback(Exception):  # noqa: N818 - an outcome that becomes a row
    """A kernel other than the required one ran; the message says which."""


class NotHandedOver(Exception):  # noqa: N818 - an outcome that becomes a row
    """Outputs could not be handed over because of the system, which is not the implementation's fault."""


@dataclass(frozen=True)
class Output:
    """The results of a call: the inputs after the call, the output y, and the gradients if the mode has any."""

    inputs: Tensors
    y: Tensor
    gradients: tuple[Tensor, ...] = ()

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The output, then the gradients of inputs and of every weight."""
        return self.y, *self.gradients


def compute(subject: Subject, workload: Workload, inputs: Tensors) -> Output:
    """Return an implementation's output for inputs, with gradients if the mode has any."""
    if not workload.with_gradients:
        with torch.inference_mode():
            return Output(inputs, subject.function(*inputs))
    with torch.enable_grad():
        inputs = workload.leaves(inputs)
        y = subject.function(*inputs)
        if type(y) is not Tensor:
            return Output(inputs, y)
        return Output(inputs, y.detach(), gradients(y, inputs, subject.weights, workload.direction))


def gradients(y: Tensor, inputs: Tensors, weights: Sequence[Tensor], direction: Tensor) -> tuple[Tensor, ...]:
    """Return the gradients of inputs and of every weight, for the gradient `direction` of the output y.

    They are zeros for frozen and unused weights.
    """
    of = [each for each in (*inputs, *weights) if each.requires_grad]
    found = iter(torch.autograd.grad(y, of, direction, allow_unused=True, materialize_grads=True))
    of_inputs = [next(found) for each in inputs if each.requires_grad]
    return *of_inputs, *(next(found) if weight.requires_grad else torch.zeros_like(weight) for weight in weights)


def check_form(subject: Subject, workload: Workload, inputs: Tensors, output: Output) -> None:
    """Check the output's form, and that inputs and weights are unchanged; raises Incorrect with the reason."""
    if type(output.y) is Tensor and not all(map(torch.equal, output.inputs, inputs)):
        raise Incorrect("edited its input in place")
    if type(output.y) is Tensor and not has_weights_of(subject, workload):
        raise Incorrect("edited the layer's weights")
    check_output(subject, output.inputs, output.y, workload.direction)


def check_output(subject: Subject, inputs: Tensors, y: Any, expected: Tensor) -> None:
    """Check the output's class, shape, dtype, device and memory against `expected` and the inputs; raises Incorrect."""
    if mistake := _mistake_of_kind(y):
        raise Incorrect(f"output {mistake}")
    if y.shape != expected.shape:
        raise Incorrect(f"output has shape {list(y.shape)}, expected {list(expected.shape)}")
    if y.dtype != expected.dtype:
        raise Incorrect(f"output is {y.dtype}, expected {expected.dtype}")
    if y.device != expected.device:
        raise Incorrect(f"output is on {y.device}, expected {expected.device}")
    if _address(y) in {_address(tensor) for tensor in (*inputs, *subject.weights)}:
        raise Incorrect("output shares memory with its input or with a weight")


def check_plain(tensors: Iterable[object], what: str) -> None:
    """Raise Incorrect for the first value that is no plain tensor, because using another one may start deferred work.

    None is allowed: it is a gradient that is zero everywhere. `what` names the values.
    """
    for tensor in tensors:
        if tensor is not None and (mistake := _mistake_of_kind(tensor)):
            raise Incorrect(f"{what} {mistake}")


def _mistake_of_kind(y: object) -> str:
    """Return why a value is no plain tensor, empty if it is one; a subclass or an attribute may run code later."""
    if type(y) is not Tensor:
        return f"is a {type(y).__name__}, expected a plain torch.Tensor"
    own = ", ".join(vars(y))
    return f"has attributes of its own ({own}), expected a plain torch.Tensor" if own else ""


def mistake_of_core(subject: Subject, workload: Workload) -> str:
    """Call once more, and return what is wrong with the form of the core's result; empty if nothing is found."""
    core = getattr(subject.function, "attend", None)
    if not (isinstance(subject.function, nn.Module) and callable(core)):
        return ""
    mistakes: list[str] = []

    @wraps(core)  # declares the same keywords
    def looked_at(q: Tensor, k: Tensor, v: Tensor, *others: Any, **options: Any) -> Any:
        o = core(q, k, v, *others, **options)
        mistakes.append(_mistake_of_form(o, [*q.shape[:-1], v.shape[-1]]))
        return o

    function = copy.copy(subject.function)
    vars(function)["attend"] = looked_at
    with suppress(Exception):  # the original call has failed too
        compute(replace(subject, function=function), workload, tuple(each.clone() for each in workload.inputs()))
    return next(filter(None, mistakes), "")


def _mistake_of_form(o: object, expected: list[int]) -> str:
    if not isinstance(o, Tensor):
        return f"attend must return a tensor {expected}, got {'None' if o is None else type(o).__name__}"
    if list(o.shape) == expected:
        return ""
    is_swapped = o.ndim == 4 and list(o.transpose(1, 2).shape) == expected
    order = "; it has tokens before heads, so return o.transpose(1, 2)" if is_swapped else ""
    return f"attend must return {expected}, got {list(o.shape)}{order}"


def share_memory(outputs: Sequence[Tensor]) -> bool:
    """Return whether outputs of several calls, all held, share memory, so that later calls overwrite earlier ones."""
    try:
        return len({_address(y) for y in outputs}) < len(outputs)
    except RuntimeError:  # a CUDA graph has reclaimed an earlier output's memory
        return True


def has_weights_of(subject: Subject, workload: Workload) -> bool:
    """Return whether an implementation's weights still equal the layer's."""
    pairs = zip(subject.weights, workload.layer.parameters(), strict=True)
    return all(torch.equal(weight, original) for weight, original in pairs)


def write(outputs: Sequence[object], path: str) -> None:
    """Write nested lists of tensors into a file, which appears when complete; raises NotHandedOver."""
    try:
        torch.save(_on_cpu(outputs), f"{path}.part")
        Path(f"{path}.part").replace(path)
    except (OSError, RuntimeError) as error:  # torch raises RuntimeError for a full disk
        raise NotHandedOver(f"outputs could not be handed over: {error}") from None


def _on_cpu(value: object) -> object:
    if isinstance(value, list | tuple):
        return [*map(_on_cpu, value)]
    return value.detach().cpu().clone() if isinstance(value, Tensor) else value


def read(path: str, like: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors in a file; raises Incorrect if their shapes or dtypes differ from `like`."""
    tensors: list[Tensor] = _loaded(path)
    _check_forms(tensors, like)
    return tensors


def read_timed(path: str, work: Workload) -> list[tuple[TimedCall, list[Tensor]]]:
    """Return the outputs of timed calls in a file, of items and whole; raises Incorrect for other shapes or dtypes."""
    kept = [(TimedCall(*call), tensors) for *call, tensors in _loaded(path)]
    item = [each[0] for each in work.like[: work.by_item if work.point.mode in TRAINED else 1]]
    for call, tensors in kept:
        _check_forms(tensors, work.like if call.item is None else item)
    return kept


def _loaded(path: str) -> Any:
    try:
        return torch.load(path, weights_only=True)
    except Exception as error:
        raise Incorrect(f"output can't be read: {type(error).__name__}") from None


def _check_forms(tensors: Sequence[Tensor], like: Sequence[Tensor]) -> None:
    if [(each.shape, each.dtype) for each in tensors] != [(each.shape, each.dtype) for each in like]:
        raise Incorrect("output has another shape or dtype than expected")


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
