"""Traces of a GPU, made by hand: a file with the categories of newer CUDA traces, and an eager layer's events."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar

from torch._C._autograd import DeviceType
from torch.autograd.profiler import profile
from torch.autograd.profiler_util import EventList

from bench.measure.recorded import recorded
from bench.plan.case import Case
from bench.plan.device import CUDA
from bench.profiling.capture import Pair
from bench.profiling.tables import kernels, operators, stages
from bench.store.profile import Profile
from tests.make.points import vit_s
from tests.make.records import ORIGIN


def label(name: str, start_us: float, duration_us: float, category: str = "user_annotation") -> dict[str, Any]:
    """Return an event with a duration."""
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": start_us, "dur": duration_us}


def launched(name: str, start_us: float, correlation: int, launch: str) -> list[dict[str, Any]]:
    """Return an operator, the launch of its kernel, and the kernel on a GPU, tied together by their ids."""
    ids = {"External id": correlation, "correlation": correlation}
    kernel = {"device": 0, "stream": 7, "grid": [8, 1, 1], "block": [128, 1, 1], "registers per thread": 32}
    return [
        {**label(name, start_us, 20.0, "cpu_op"), "args": {"External id": correlation}},
        {**label("launch", start_us + 5, 5.0, launch), "args": ids},
        {
            **label(f"{name} kernel", start_us + 15, 30.0, "kernel"),
            "pid": 0,
            "tid": 7,
            "args": {**ids, **kernel, "blocks per SM": 0.5, "est. achieved occupancy %": 40, "shared memory": 0},
        },
    ]


TRACE: dict[str, Any] = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "GPU", "totalGlobalMem": 1 << 34, "computeMajor": 9, "computeMinor": 0}],
    "traceEvents": [
        label("ProfilerStep#1", 100.0, 90.0),
        label("ProfilerStep#2", 200.0, 90.0),
        label("softmax", 110.0, 30.0),
        *launched("aten::softmax", 112.0, 1, "cuda_runtime"),
        *launched("triton_poi_fused", 145.0, 2, "cuda_driver"),
        *launched("aten::mm", 210.0, 3, "cuda_runtime"),
        label("softmax", 127.0, 30.0, "gpu_user_annotation"),
        {**label("Memcpy HtoD", 270.0, 5.0, "gpu_memcpy"), "args": {"External id": 3, "correlation": 3, "device": 0}},
    ],
    "displayTimeUnit": "ms",
    "traceName": "a name with [brackets].json",
}
"""Two calls: a stage, three kernels and a copy."""


class Recorded:
    """An event as the profiler's C++ part gives it to Python: each value is a method; its times are microseconds."""

    USUAL: ClassVar[dict[str, Any]] = {
        **dict.fromkeys(("overload_name", "activity_type", "metadata_json"), ""),
        **dict.fromkeys(("shapes", "concrete_inputs", "stack", "dtypes"), ()),
        **dict.fromkeys(("is_async", "is_user_annotation", "is_python_function"), False),
        "sequence_nr": -1,
        "device_type": DeviceType.CPU,
    }

    def __init__(self, name: str, start_us: float, duration_us: float, **values: Any) -> None:
        times = {"start_ns": round(1e3 * start_us), "end_ns": round(1e3 * (start_us + duration_us))}
        self._values = {**self.USUAL, **values, "name": name, **times}

    def __getattr__(self, name: str) -> Callable[[], Any]:
        return lambda: self._values.get(name, 0)


@dataclass
class Eager:
    """One call of an eager layer on a GPU, with the call's label and that of each stage, read by torch's own code.

    The host is ahead: all kernels begin behind a hold, when the last was launched. Before the call the L2 was
    overwritten, by a kernel with the name of one of the call's. Each operator has a number, and so has each launch.
    """

    SHAPES: ClassVar[dict[str, Any]] = {"aten::addmm": ([4], [2, 3], [3, 4]), "aten::bmm": ([2, 2, 3], [2, 3, 2])}

    label: str = "mine call"
    _events: list[Recorded] = field(default_factory=list)
    _host_us: float = 10.0
    _device_us: float = 400.0
    _operators: int = 0
    _launches: int = 0

    def __post_init__(self) -> None:
        self._launch("vectorized_elementwise", 30.0, "aten::zero_")
        begin_us = self._host_us
        self._operators += 1
        whole = self._operators
        self._stage("qkv projection", self._linear, "gemm_qkv", 20.0)
        self._stage("scale", self._launch, "vectorized_elementwise", 4.0, "aten::mul")
        self._events.append(Recorded("Activity Buffer Request", self._host_us, 60.0))
        self._host_us += 61.0
        self._stage("scores", self._product, "gemm_scores", 10.0, ("copy_q", "copy_k"))
        self._stage("softmax", self._launch, "softmax_warp", 12.0, "aten::_softmax", "aten::softmax")
        self._stage("weighted values", self._product, "gemm_values", 9.0, ("copy_v",))
        self._stage("merge heads", self._launch, "copy_merged", 3.0, "aten::copy_", "aten::clone")
        self._stage("output projection", self._linear, "gemm_proj", 8.0)
        self._launch("vectorized_elementwise", 2.0, "aten::add")
        self._events.append(
            Recorded(self.label, begin_us, self._host_us - begin_us, correlation_id=whole, is_user_annotation=True)
        )

    def events(self) -> list[Any]:
        """Return the events as torch's profiler returns them: operators as a tree, each with its kernels."""
        raw: Any = SimpleNamespace(trace_start_ns=lambda: 0, events=lambda: self._events)
        tree = EventList(profile()._parse_kineto_results(raw), profile_memory=False)
        tree._build_tree()
        return tree

    def _stage(self, name: str, work: Callable[..., None], *given: Any) -> None:
        """Record a stage: its label on the host, and the span of its kernels that the profiler adds to those."""
        self._operators += 1
        number, host_us, device_us = self._operators, self._host_us, self._device_us
        self._host_us += 2.0
        work(*given)
        self._host_us += 2.0
        took_us = self._host_us - host_us
        self._events.append(Recorded(name, host_us, took_us, correlation_id=number, is_user_annotation=True))
        span = {"device_type": DeviceType.CUDA, "is_user_annotation": True, "linked_correlation_id": number}
        self._events.append(Recorded(name, device_us, self._device_us - device_us, device_resource_id=7, **span))

    def _linear(self, kernel: str, took_us: float) -> None:
        self._launch(kernel, took_us, "aten::addmm", "aten::linear")

    def _product(self, kernel: str, took_us: float, copies: tuple[str, ...]) -> None:
        for copy in copies:
            self._launch(copy, 3.0, "aten::copy_", "aten::clone")
        self._launch(kernel, took_us, "aten::bmm", "aten::matmul")

    def _launch(self, kernel: str, took_us: float, *operators: str) -> None:
        """Record operators, each around the one before it, with a launch in the innermost and its kernel on stream 7.

        An operator takes 10 µs of the host more than the one inside; the innermost launches after 3 µs, for 6 µs. A
        kernel begins 1 µs after the one before it.
        """
        begin_us, inner_us = self._host_us, 10.0 * len(operators)
        for depth, name in enumerate(reversed(operators)):
            self._operators += 1
            shapes = self.SHAPES.get(name, ())
            ids = {"correlation_id": self._operators, "shapes": shapes, "concrete_inputs": (None,) * len(shapes)}
            self._events.append(Recorded(name, begin_us + 5 * depth, inner_us - 10 * depth, **ids))
        self._launches += 1
        ids = {"correlation_id": self._launches, "linked_correlation_id": self._operators}
        self._events.append(Recorded("cudaLaunchKernel", begin_us + 5 * depth + 3, 6.0, **ids))
        on_gpu = {"device_type": DeviceType.CUDA, "device_resource_id": 7, **ids}
        self._events.append(Recorded(kernel, self._device_us, took_us, **on_gpu))
        self._device_us += took_us + 1.0
        self._host_us += inner_us + 1.0


def eager_profile() -> Profile:
    """Return the profile of three eager calls, each of 88 µs on the GPU."""
    at = vit_s(device="cuda", timing="device-cold", dtype="bfloat16")
    profilers: list[Any] = [Eager() for _ in range(3)]
    pairs = [Pair(88e-6, 90e-6, (0, 0), 0, recorded(each, "mine call"), Counter(), each) for each in profilers]
    ran = kernels(pairs[0].call)
    return Profile(Case(at, "eager"), ORIGIN, 3, 88e-6, 90e-6, operators(pairs, CUDA), stages(pairs, at), ran)
