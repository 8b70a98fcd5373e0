"""CUDA graphs: capture a call once and replay it, as a user does with a launch-bound layer."""

import gc
from collections.abc import Callable

import torch
from torch import Tensor

from bench.measure.layer import Tensors
from bench.measure.subjects import Inputs, Subject, step
from bench.measure.workload import Workload
from impls.contract import Unsupported

WARM_CALLS = 3
"""The calls on a side stream before the capture, as torch's documentation requires."""

REPLAYED = ("inference", "train")
"""The modes in which one call is complete, so that it can be captured."""


class _Static:
    """Inputs at fixed addresses, because a graph uses the memory with which it was captured."""

    def __init__(self, of: Inputs) -> None:
        self._of = of
        self.direction = of.direction.clone()
        tensors = tuple(each.detach().clone().requires_grad_(each.requires_grad) for each in of.next())
        self.next: Callable[[], Tensors] = lambda: tensors

    def renew(self) -> None:
        """Copy the inputs of the next call into the fixed ones."""
        with torch.no_grad():
            for own, tensor in zip(self.next(), self._of.next(), strict=True):
                own.copy_(tensor)
            self.direction.copy_(self._of.direction)


class Graph:
    """A captured call of an implementation: `renew` copies inputs, a call replays it, `keep` copies a result.

    Raises Unsupported with torch's reason if the call can't be captured.
    """

    def __init__(self, subject: Subject, workload: Workload, inputs: Inputs) -> None:
        if (mode := workload.point.mode) not in REPLAYED:
            raise Unsupported(
                f"timing graph needs mode {' or '.join(REPLAYED)}, got {mode}, "
                "because a replay leaves nothing for a backward pass"
            )
        self._static = _Static(inputs)
        call = step(subject, workload, self._static)
        self._graph = torch.cuda.CUDAGraph()
        with workload.gradient_mode():
            before, stream = torch.cuda.current_stream(), torch.cuda.Stream()
            stream.wait_stream(before)
            with torch.cuda.stream(stream):
                for _ in range(WARM_CALLS):
                    call()
            before.wait_stream(stream)
            gc.collect()
            try:
                with torch.cuda.graph(self._graph):
                    self._result = call()
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:
                torch.cuda.set_stream(before)  # a failed capture leaves its own stream
                cause = error.__context__ if isinstance(error.__context__, RuntimeError) else error
                reason = next(iter(str(cause).strip().splitlines()), type(cause).__name__)
                raise Unsupported(f"a call can't be captured as a CUDA graph: {reason}") from error
        self.renew: Callable[[], None] = self._static.renew

    def __call__(self) -> object:
        """Replay the graph, and return its result, which the next replay overwrites."""
        self._graph.replay()
        return self._result

    def keep(self, result: object) -> object:
        """Return a copy of a result, queued behind the replay."""
        return _copied(result)


def _copied(result: object) -> object:
    """Return a copy of a tensor, or of a tuple in which each tensor is copied."""
    if isinstance(result, Tensor):
        return result.detach().clone()
    return tuple(map(_copied, result)) if isinstance(result, tuple) else result
