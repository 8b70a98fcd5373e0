"""An eager layer's events on a GPU, made by hand."""

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
from bench.profiling.tables import kernels, operators, stages
from bench.store.profile import Profile
from tests.make.points import vit_s
from tests.make.records import ORIGIN


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
    """A call of an eager layer on a GPU, with the call's label and that of each stage, read by torch's own code.

    The host is ahead: all kernels begin behind a hold, when the last was launched. Before the call the L2 was
    overwritten, by a kernel with the name of one of the call's. Each operator has a number, and so has each launch.
    """

    SHAPES: ClassVar[dict[str, Any]] = {"aten::addmm": ([4], [2, 3], [3, 4]), "aten::bmm": ([2, 2, 3], [2, 3, 2])}

    _events: list[Recorded] = field(default_factory=list)
    _host_us: float = 10.0
    _device_us: float = 400.0
    _operators: int = 0
    _launches: int = 0

    def __post_init__(self) -> None:
        self._launch("vectorized_elementwise", 30.0, "aten::zero_")
        begin_us = self._host_us
        self._operators += 1
        whole = {"correlation_id": self._operators, "is_user_annotation": True}
        self._stage("qkv", ("gemm_qkv", 20.0, "aten::addmm", "aten::linear"))
        self._events.append(Recorded("Activity Buffer Request", self._host_us, 60.0))
        self._host_us += 61.0
        copies = [(name, 3.0, "aten::copy_", "aten::clone") for name in ("copy_q", "copy_k", "copy_v")]
        self._stage("attention core", *copies, ("gemm_scores", 10.0, "aten::bmm", "aten::matmul"),
            ("softmax_warp", 12.0, "aten::_softmax", "aten::softmax"),
            ("gemm_values", 9.0, "aten::bmm", "aten::matmul"))  # fmt: skip
        self._stage("proj", ("gemm_proj", 8.0, "aten::addmm", "aten::linear"))
        self._launch("vectorized_elementwise", 2.0, "aten::add")
        self._events.append(Recorded("call", begin_us, self._host_us - begin_us, **whole))

    def events(self) -> EventList:
        """Return the events as torch's profiler returns them: operators as a tree, each with its kernels."""
        raw: Any = SimpleNamespace(trace_start_ns=lambda: 0, events=lambda: self._events)
        tree = EventList(profile()._parse_kineto_results(raw), profile_memory=False)
        tree._build_tree()
        for event in tree:
            event.use_device = "cuda"
        return tree

    def _stage(self, name: str, *launches: tuple[Any, ...]) -> None:
        """Record a stage: its label on the host, and the span of its kernels that the profiler adds to those."""
        self._operators += 1
        number, host_us, device_us = self._operators, self._host_us, self._device_us
        self._host_us += 2.0
        for each in launches:
            self._launch(*each)
        took_us = self._host_us + 2.0 - host_us
        self._events.append(Recorded(name, host_us, took_us, correlation_id=number, is_user_annotation=True))
        span = {"device_type": DeviceType.CUDA, "is_user_annotation": True, "linked_correlation_id": number}
        self._events.append(Recorded(name, device_us, self._device_us - device_us, device_resource_id=7, **span))
        self._host_us += 2.0

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
    """Return the profile of a call that takes 80 µs on the GPU, with the gaps between its kernels."""
    at = vit_s(device="cuda", timing="device-cold", dtype="bfloat16")
    profiler: Any = SimpleNamespace(events=Eager().events())
    profiler.events = lambda events=profiler.events: events
    calls = recorded(profiler, "call")
    by_kind = operators(profiler, calls, CUDA), stages(calls, CUDA), kernels(calls[-1])
    return Profile(Case(at, "eager"), ORIGIN, 1, 80e-6, 82e-6, *by_kind)
