"""CUDA graphs: one call, captured once and replayed, as a user does whose layer is bound by the launch of kernels."""

from collections.abc import Callable

import torch
from torch import Tensor

from bench.measure.workload import Inputs, Subject, Tensors, Workload, step
from impls.contract import Unsupported

WARM_CALLS = 3
"""The calls on the stream of the capture before it, as torch's documentation asks for."""


class _Static:
    """Inputs whose memory stays the same: a graph reads and writes what it was captured with."""

    def __init__(self, of: Inputs) -> None:
        self._of = of
        self.direction = of.direction.clone()
        self._tensors: Tensors = tuple(each.detach().clone().requires_grad_(each.requires_grad) for each in of.next())

    @property
    def next(self) -> Callable[[], Tensors]:
        """What returns the inputs."""
        return lambda: self._tensors

    @property
    def with_directions(self) -> bool:
        """Whether a call returns gradients."""
        return self._of.with_directions

    def renew(self) -> None:
        """Write the inputs of the next call into them."""
        with torch.no_grad():
            for own, tensor in zip(self._tensors, self._of.next(), strict=True):
                own.copy_(tensor)
            self.direction.copy_(self._of.direction)


class Graph:
    """A call of an implementation as a graph: `renew` brings inputs, calling replays it, `keep` copies a result.

    Raises Unsupported with torch's reason if the call can't be captured.
    """

    def __init__(self, subject: Subject, workload: Workload, inputs: Inputs) -> None:
        self._static = _Static(inputs)
        call = step(subject, workload, self._static)
        self._graph = torch.cuda.CUDAGraph()
        reserved = torch.cuda.memory_reserved()
        try:
            with workload.gradient_mode():
                stream = torch.cuda.Stream()
                stream.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(stream):
                    for _ in range(WARM_CALLS):
                        call()
                torch.cuda.current_stream().wait_stream(stream)
                with torch.cuda.graph(self._graph):
                    self._result = call()
        except RuntimeError as error:
            reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise Unsupported(f"a call can't be captured as a CUDA graph: {reason}") from error
        self.reserved_bytes = torch.cuda.memory_reserved() - reserved
        self.renew: Callable[[], None] = self._static.renew

    def __call__(self) -> object:
        """Replay the graph, and return its result, which the next replay overwrites."""
        self._graph.replay()
        return self._result

    def keep(self, result: object) -> object:
        """Return a copy of a result, queued behind the replay."""
        return _copied(result)


def _copied(result: object) -> object:
    """Return a copy of a tensor, or of a tuple of them and what else is in it."""
    if isinstance(result, Tensor):
        return result.detach().clone()
    return tuple(map(_copied, result)) if isinstance(result, tuple) else result
