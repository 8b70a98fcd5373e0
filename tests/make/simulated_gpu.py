"""A GPU that is made up, with a clock of its own, behind the names of torch.cuda that the suite uses.

The host queues work to streams, which takes it a while; a stream does its work in order. If too much is queued, the
host waits. Tensors are the CPU's, so results are right and take none of this time.
It also has an allocator, a driver that lets lines of L2 persist, and a context that a kernel can ruin.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bench.measure import clock, cuda, devices, measured_case
from bench.plan.device import CUDA

CLOCK_HZ = 1.5e9
LAUNCH_S = 5e-6
QUEUE = 1000
"""The clock of the GPU, the host's seconds of a launch, and the most launches that fit into a stream."""

NAME = "NVIDIA Made-Up"

READS = ("aten::item", "aten::_local_scalar_dense")
"""What `.item()` does: the host waits for a value."""


class Stream:
    """A stream; `ends_s` are the times at which its work ends, in order."""

    def __init__(self, gpu: "Gpu") -> None:
        self.gpu = gpu
        self.ends_s: list[float] = []

    @property
    def end_s(self) -> float:
        """When all of its work will have ended."""
        return self.ends_s[-1] if self.ends_s else 0.0

    @property
    def cuda_stream(self) -> int:
        """Its number; the default stream is 0."""
        return self.gpu.streams.index(self)

    def query(self) -> bool:
        """Return whether all of its work is done."""
        return self.end_s <= self.gpu.now_s

    def wait_stream(self, other: "Stream") -> None:
        """Begin later work only after the work of another stream so far."""
        self.ends_s.append(max(self.end_s, other.end_s))


class Event:
    """An event: recorded, it has the time at which the work before it ends."""

    def __init__(self, gpu: "Gpu") -> None:
        self.gpu = gpu
        self.at_s = math.inf

    def record(self) -> None:
        """Queue the event on the current stream."""
        self.gpu.record()
        self.at_s = self.gpu.current.end_s

    def query(self) -> bool:
        """Return whether the GPU has met it."""
        self.gpu.check()
        return self.at_s <= self.gpu.now_s

    def synchronize(self) -> None:
        """Wait for it."""
        self.gpu.check()
        self.gpu.now_s = max(self.gpu.now_s, self.at_s)

    def elapsed_time(self, end: "Event") -> float:
        """Return the milliseconds to a later event."""
        return (end.at_s - self.at_s) * 1e3


class Gpu:
    """The GPU: `now_s` is the host's time, `event_s` the time of an event, `slowed` the factor of slowed work."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.event_s = 0.0
        self.slowed = 1.0
        self.overwritten = 0
        self.held_s = 0.0
        self.is_lost = False
        self.memory = Memory()
        self.watched: Sequence[torch.Tensor] = ()
        self._before: dict[int, torch.Tensor] = {}
        self.queue = QUEUE
        self.streams = [Stream(self)]
        self.current = self.streams[0]

    def launch(self, seconds: float, host_s: float = LAUNCH_S) -> None:
        """Queue work on the current stream; the host waits while the queue is full."""
        self.now_s += host_s
        in_queue = [end_s for end_s in self.current.ends_s if end_s > self.now_s]
        if len(in_queue) >= self.queue:
            self.now_s = in_queue[-self.queue]
        begin_s = max(self.now_s, self.current.end_s)
        self.current.ends_s = [*in_queue, begin_s + self.slowed * seconds]

    def record(self) -> None:
        """Queue an event."""
        self.launch(self.event_s)

    def call(self, kernels: int = 1, kernel_s: float = 1e-5, host_s: float = LAUNCH_S) -> Callable[[], object]:
        """Return a call that launches kernels, each of which takes the host this long."""

        def call() -> object:
            for _ in range(kernels):
                self.launch(kernel_s, host_s)
            return None

        return call

    def sleep(self, cycles: int) -> None:
        """Queue a kernel that does nothing for a number of cycles."""
        self.held_s = cycles / CLOCK_HZ
        self.launch(cycles / CLOCK_HZ)
        self._before = {id(each): each.detach().clone() for each in self.watched}

    def seen(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the values of a tensor, one of `watched`, that work which is launched now finds.

        Work that begins before the end of the hold finds the values from before it.
        """
        is_early = max(self.now_s, self.current.end_s) < self.streams[0].end_s
        return self._before.get(id(tensor), tensor) if is_early else tensor

    def ruin(self) -> None:
        """Queue a kernel that asserts: nothing works from then on."""
        self.launch(1e-5)
        self.is_lost = True

    def check(self) -> None:
        """Raise what CUDA says once a kernel has ruined its context."""
        if self.is_lost:
            raise RuntimeError("CUDA error: device-side assert triggered")

    def synchronize(self, *_device: object) -> None:
        """Wait for all streams."""
        self.check()
        self.now_s = max(self.now_s, *(stream.end_s for stream in self.streams))

    def zero_(self) -> None:
        """Overwrite L2."""
        self.overwritten += 1
        self.launch(3e-5)

    def stream(self) -> Stream:
        """Return another stream."""
        self.streams.append(Stream(self))
        return self.streams[-1]

    def set_stream(self, stream: Stream) -> None:
        """Let a stream be the current one from now on."""
        self.current = stream

    @contextmanager
    def on(self, stream: Stream) -> Iterator[None]:
        """Let a stream be the current one."""
        before, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = before

    @contextmanager
    def graph(self, graph: "Graph") -> Iterator[None]:
        """Capture the computation; if that fails, the end of the capture fails too, on its own stream."""
        try:
            with _Recorded() as graph.recorded:
                yield
        except RuntimeError:
            self.current = self.stream()
            raise RuntimeError("CUDA error: operation failed due to a previous error during capture")  # noqa: B904

    def put(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let this be the GPU of the suite."""
        now: Mapping[str, object] = {
            "Event": lambda **_options: Event(self),
            "_sleep": self.sleep,
            "_record": Event.record,
            "_query": Event.query,
            "_elapsed_ms": Event.elapsed_time,
            "_wait": Event.synchronize,
            "synchronize": self.synchronize,
            "perf_counter": lambda: self.now_s,
            "current_device": lambda: 0,
            "_l2_buffer": lambda _device: self,
        }
        for name, value in now.items():
            monkeypatch.setattr(cuda, name, value)
        monkeypatch.setattr(clock, "perf_counter", now["perf_counter"])
        cuda._wake.cache_clear()
        of_torch: Mapping[str, object] = {
            "Stream": self.stream,
            "current_stream": lambda *_: self.current,
            "stream": self.on,
            "set_stream": self.set_stream,
            "graph": self.graph,
            "CUDAGraph": lambda: Graph(self),
            **self.memory.functions(),
            "synchronize": self.synchronize,
            "is_initialized": lambda: True,
        }
        for name, value in of_torch.items():
            monkeypatch.setattr(torch.cuda, name, value)


class Memory:
    """Torch's caching allocator: blocks of whole MiB, which it keeps until its cache is emptied."""

    def __init__(self, size: int = 80 << 30) -> None:
        self.size = size
        self.allocated = self.reserved = self.peak = 0

    def allocate(self, size: int) -> None:
        """Allocate bytes; raises OutOfMemoryError with torch's words."""
        needed = self.allocated + size
        if needed > self.size:
            free = self.size - self.reserved
            raise torch.OutOfMemoryError(
                f"CUDA out of memory. Tried to allocate {size >> 20} MiB. GPU 0 has a total capacity of "
                f"{self.size >> 20} MiB of which {free >> 20} MiB is free."
            )
        self.allocated, self.peak = needed, max(self.peak, needed)
        self.reserved = max(self.reserved, math.ceil(needed / 2**20) << 20)

    def free(self, size: int) -> None:
        """Free bytes, which stay reserved."""
        self.allocated -= size

    def empty(self) -> None:
        """Free memory that is reserved but not allocated."""
        self.reserved = math.ceil(self.allocated / 2**20) << 20

    def reset(self, _device: object = None) -> None:
        """Set the peak to the current value."""
        self.peak = self.allocated

    def functions(self) -> Mapping[str, object]:
        """Return the functions of torch.cuda that ask it."""
        return {
            "memory_allocated": lambda *_: self.allocated,
            "max_memory_allocated": lambda *_: self.peak,
            "reset_peak_memory_stats": self.reset,
            "empty_cache": self.empty,
            "mem_get_info": lambda *_: (self.size - self.reserved, self.size),
        }


class Graph:
    """A graph that repeats the captured computation into the same memory."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.recorded = _Recorded()

    def replay(self) -> None:
        """Compute all again; a replay is one launch."""
        self.recorded.again()
        self.gpu.launch(1e-5)


class _Recorded(TorchDispatchMode):
    """The operations inside."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.made: list[tuple[Any, Sequence[Any], Mapping[str, Any], list[Any]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Compute an operation, and keep it."""
        if func.name().startswith(READS):
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing\nCompile with …")
        made = func(*args, **(kwargs or {}))
        self.made.append((func, args, kwargs or {}, tree_leaves(made)))
        return made

    def again(self) -> None:
        """Compute all operations again, into the memory of their first results."""
        with torch.inference_mode():
            for func, args, kwargs, made in self.made:
                for before, now in zip(made, tree_leaves(func(*args, **kwargs)), strict=True):
                    if isinstance(before, torch.Tensor) and before.data_ptr() != now.data_ptr():
                        before.copy_(now)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    """Return a simulated GPU that stands where the suite asks for one."""
    gpu = Gpu()
    gpu.put(monkeypatch)
    return gpu


class InRealTime(Gpu):
    """The same beside real processes: the host's time is the real one, and waiting takes it.

    The GPU takes a fifth of the CPU's time between two events.
    """

    share = 0.2

    def __init__(self) -> None:
        super().__init__()
        self._recorded_s = 0.0

    @property
    def now_s(self) -> float:
        """The host's time."""
        return time.perf_counter()

    @now_s.setter
    def now_s(self, until_s: float) -> None:
        while time.perf_counter() < until_s:
            pass

    def launch(self, seconds: float, host_s: float = 0.0) -> None:
        """Queue work on the current stream."""
        super().launch(seconds, host_s)

    def record(self) -> None:
        """Queue the computation since the last event."""
        before_s, self._recorded_s = self._recorded_s, time.perf_counter()
        self.launch(self.share * min(self._recorded_s - before_s, 0.1))

    def put(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let this be the GPU of this process, whose tensors are the CPU's."""
        super().put(monkeypatch)
        gpu = SimpleNamespace(
            name=NAME, total_memory=8 << 30, L2_cache_size=1 << 20, uuid="simulated", major=9, minor=0
        )
        of_torch: Mapping[str, object] = {
            "is_available": lambda: True,
            "device_count": lambda: 1,
            "set_device": lambda _index: None,
            "current_device": lambda: 0,
            "get_device_properties": lambda _device=0: gpu,
            "get_device_name": lambda _device=0: NAME,
            "mem_get_info": lambda *_: (7 << 30, 8 << 30),
            "empty_cache": lambda: None,
            "reset_peak_memory_stats": lambda *_: None,
            "memory_allocated": lambda *_: 1 << 20,
            "max_memory_allocated": lambda *_: 3 << 20,
        }
        for name, value in of_torch.items():
            monkeypatch.setattr(torch.cuda, name, value)
        for name, value in {"products": (64, 128), "copied_bytes": 1 << 20}.items():
            object.__setattr__(CUDA, name, value)  # the CPU computes them
        monkeypatch.setattr(devices.Gpu, "place", "cpu")
        monkeypatch.setattr(measured_case, "LATE_S", 1.0)  # the host's delays are real, and no work of another stream
        monkeypatch.setattr(devices.Gpu, "activities", devices.Device.activities)  # else each operator is an error
