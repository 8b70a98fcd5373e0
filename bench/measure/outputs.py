"""The outputs of an implementation: computed, checked for their form, and written to a file for the judge.

The process of an implementation holds no expected output, so the numbers are compared elsewhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bench.measure.workload import Subject, Workload


class Incorrect(Exception):  # noqa: N818 - an outcome that becomes a row
    """The output can't be the layer's; the message says why."""


@dataclass(frozen=True)
class Output:
    """The results of a call: the input x after the call, the output y, and the gradients if the mode has any."""

    x: Tensor
    y: Tensor
    gradients: tuple[Tensor, ...] = ()

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The output, then the gradients of x and of every weight."""
        return self.y, *self.gradients


class TimedOutputs:
    """Memory for outputs of timed calls, allocated before the rounds so that keeping them changes no memory layout.

    `hold` copies the output of one call of a timing, `keep` those parts of what is held that are judged. In mode
    forward the gradients are found when the whole output is kept, because they are no part of a call.
    """

    def __init__(self, like: Output, timings: int, parts: int, workload: Workload) -> None:
        self._workload = workload
        in_call = like.tensors if workload.point.mode != "forward" else like.tensors[:1]
        self._held = [[torch.zeros_like(tensor) for tensor in in_call] for _ in range(timings)]
        self._parts = [[torch.zeros_like(tensor[0]) for tensor in in_call[:BY_ITEM]] for _ in range(parts)]
        self._whole = [torch.zeros_like(tensor) for tensor in like.tensors]
        self._filled = 0
        self._last: tuple[int, Subject, Tensor, Any] | None = None

    @property
    def kept(self) -> list[Tensor]:
        """The whole output, then each part."""
        return [*self._whole, *(tensor for part in self._parts[: self._filled] for tensor in part)]

    def hold(self, timing: int, subject: Subject, x: Tensor, result: Any) -> None:
        """Copy the result of a call on x; raises Incorrect if it has a wrong form."""
        train = self._workload.point.mode == "train"
        y, found = result if train else (result, ())
        check_output(subject, x, y, self._workload.direction)
        inputs = [x, *subject.layer.parameters()]
        whole = (torch.zeros_like(like) if each is None else each for each, like in zip(found, inputs, strict=False))
        for copy, tensor in zip(self._held[timing], (y.detach(), *whole), strict=True):
            copy.copy_(tensor)
        self._last = (timing, subject, x, y) if self._workload.point.mode == "forward" else None

    def keep(self, parts: Sequence[tuple[int, int, int]], whole: int | None) -> None:
        """Keep items of what is held, each at a place, and the whole output of a timing; in mode forward the last."""
        for place, timing, item in parts:
            self._filled = max(self._filled, place + 1)
            for copy, tensor in zip(self._parts[place], self._held[timing], strict=False):
                copy.copy_(tensor[item])
        if whole is not None:
            tensors = self._held[whole]
            if self._last is not None:
                _, subject, x, y = self._last
                tensors = [*tensors, *gradients(y, x, subject.layer, self._workload.direction)]
            for copy, tensor in zip(self._whole, tensors, strict=True):
                copy.copy_(tensor)
        self._last = None


BY_ITEM = 2
"""The output and the gradient of x have an item of the batch each; the gradients of weights are sums over all items."""


def compute(subject: Subject, x: Tensor, direction: Tensor | None) -> Output:
    """Return an implementation's output for x, with gradients if there is a direction."""
    if direction is None:
        with torch.inference_mode():
            return Output(x, subject.function(x))
    with torch.enable_grad():
        x = x if x.requires_grad else x.detach().requires_grad_()
        y = subject.function(x)
        if type(y) is not Tensor:
            return Output(x, y)
        return Output(x, y.detach(), gradients(y, x, subject.layer, direction))


def gradients(y: Tensor, x: Tensor, layer: nn.Module, direction: Tensor) -> tuple[Tensor, ...]:
    """Return the gradients of x and of every weight of a layer, for the gradient `direction` of its output y."""
    inputs = [x, *layer.parameters()]
    return torch.autograd.grad(y, inputs, direction, allow_unused=True, materialize_grads=True)


def check_form(subject: Subject, workload: Workload, x: Tensor, output: Output) -> None:
    """Check everything about the output for x except its numbers; raises Incorrect with the reason."""
    if type(output.y) is Tensor and not torch.equal(output.x, x):
        raise Incorrect("edited its input in place")
    if type(output.y) is Tensor and not has_weights_of(subject, workload):
        raise Incorrect("edited the layer's weights")
    check_output(subject, output.x, output.y, workload.direction)


def check_output(subject: Subject, x: Tensor, y: Any, expected: Tensor) -> None:
    """Check the form of the output for x alone, beside a tensor of the expected form; raises Incorrect."""
    if type(y) is not Tensor:
        raise Incorrect(f"output is a {type(y).__name__}, expected a plain torch.Tensor")
    if y.shape != expected.shape:
        raise Incorrect(f"output has shape {list(y.shape)}, expected {list(expected.shape)}")
    if y.dtype != expected.dtype:
        raise Incorrect(f"output is {y.dtype}, expected {expected.dtype}")
    if y.device != expected.device:
        raise Incorrect(f"output is on {y.device}, expected {expected.device}")
    if _address(y) in {_address(tensor) for tensor in (x, *subject.layer.parameters())}:
        raise Incorrect("output shares memory with its input or with a weight")


def share_memory(results: Sequence[object]) -> bool:
    """Return whether the outputs of several calls, all held, lie in the same memory: then most of them are lost."""
    outputs = [y for y in map(_output_of, results) if isinstance(y, Tensor)]
    try:
        return len({_address(y) for y in outputs}) < len(outputs)
    except RuntimeError:  # a CUDA graph has taken the memory of earlier ones back
        return True


def _output_of(result: object) -> object:
    """Return the output of what a call returned, which may hold gradients too."""
    return result[0] if isinstance(result, tuple) and result else result


def has_weights_of(subject: Subject, workload: Workload) -> bool:
    """Return whether an implementation's weights are still the layer's."""
    pairs = zip(subject.layer.parameters(), workload.layer.parameters(), strict=True)
    return all(torch.equal(weight, original) for weight, original in pairs)


def write(tensors: Sequence[Tensor], path: Path) -> None:
    """Write the bytes of tensors, one after the other."""
    with path.open("wb") as file:
        for tensor in tensors:
            flat = tensor.detach().to("cpu").contiguous().reshape(-1)
            file.write(flat.view(torch.uint8).numpy().data)


def read(path: Path, like: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return tensors on the CPU with the shapes and dtypes of `like`.

    Raises Incorrect if the file has another size, or if it is missing: the process that wrote it may have removed it.
    """
    if not path.exists():
        raise Incorrect("output was not handed over")
    size, expected = path.stat().st_size, sum(tensor.nbytes for tensor in like)
    if size != expected:
        raise Incorrect(f"output has {size} bytes, expected {expected}")
    content = torch.from_file(str(path), size=size, dtype=torch.uint8) if size else torch.empty(0, dtype=torch.uint8)
    parts = content.split([tensor.nbytes for tensor in like])
    return tuple(part.clone().view(each.dtype).view(each.shape) for part, each in zip(parts, like, strict=True))


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
