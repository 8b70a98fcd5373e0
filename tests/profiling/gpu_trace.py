"""An eager layer's events on a GPU, made by hand."""

from itertools import count
from types import SimpleNamespace
from typing import Any

from torch._C._autograd import DeviceType
from torch.autograd.profiler_util import EventList, FunctionEvent, Kernel

from bench.measure.recorded import recorded
from bench.plan.case import Case
from bench.plan.device import CUDA
from bench.profiling.tables import kernels, operators, stages
from bench.store.profile import Profile
from tests.make.points import vit_s
from tests.make.records import ORIGIN

SHAPES: dict[str, Any] = {"aten::addmm": ([4], [2, 3], [3, 4]), "aten::bmm": ([2, 2, 3], [2, 3, 2])}


class Eager:
    """The events of a call of an eager layer on a GPU, with the labels of the call and its stages.

    The host is ahead: all kernels begin behind a hold, when the last was launched. Before the call the L2 was
    overwritten, by a kernel with the name of one of the call's. A launch has the number of its kernel.
    """

    def __init__(self) -> None:
        self.events = EventList(use_device="cuda")
        self._numbers, self._host_us, self._device_us = count(), 10.0, 400.0
        self._launch("vectorized_elementwise", 30.0, "aten::zero_")
        begin_us = self._host_us
        self._stage("qkv", ("gemm_qkv", 20.0, "aten::addmm", "aten::linear"))
        self._add("Activity Buffer Request", self._host_us, 60.0)
        self._host_us += 61.0
        copies = [(name, 3.0, "aten::copy_", "aten::clone") for name in ("copy_q", "copy_k", "copy_v")]
        self._stage("attention core", *copies, ("gemm_scores", 10.0, "aten::bmm", "aten::matmul"),
            ("softmax_warp", 12.0, "aten::_softmax", "aten::softmax"),
            ("gemm_values", 9.0, "aten::bmm", "aten::matmul"))  # fmt: skip
        self._stage("proj", ("gemm_proj", 8.0, "aten::addmm", "aten::linear"))
        self._launch("vectorized_elementwise", 2.0, "aten::add")
        self._add("call", begin_us, self._host_us - begin_us, is_user_annotation=True)
        self.events._build_tree()

    def _add(self, name: str, start_us: float, us: float, number: int | None = None, **values: Any) -> FunctionEvent:
        number = next(self._numbers) if number is None else number
        event = FunctionEvent(number, name, 1, start_us, start_us + us, use_device="cuda", **values)
        self.events.append(event)
        return event

    def _stage(self, name: str, *launches: tuple[Any, ...]) -> None:
        """Record a stage: its label on the host, to whose kernels the profiler adds the span of them all."""
        host_us, device_us = self._host_us, self._device_us
        self._host_us += 2.0
        for each in launches:
            self._launch(*each)
        self._host_us += 2.0
        label = self._add(name, host_us, self._host_us - host_us, is_user_annotation=True)
        label.kernels.append(Kernel(name, 0, self._device_us - device_us))

    def _launch(self, kernel: str, took_us: float, *operators: str) -> None:
        """Record operators, each around the one before it, with a launch in the innermost and its kernel on stream 7.

        An operator takes 10 µs of the host more than the one inside; the innermost launches after 3 µs, for 6 µs. A
        kernel begins 1 µs after the one before it.
        """
        begin_us, inner_us = self._host_us, 10.0 * len(operators)
        for depth, name in enumerate(reversed(operators)):
            shapes = SHAPES.get(name, ())
            inputs = {"input_shapes": shapes, "concrete_inputs": (None,) * len(shapes)}
            innermost = self._add(name, begin_us + 5 * depth, inner_us - 10 * depth, **inputs)
        innermost.append_kernel(kernel, 0, took_us)
        launch = self._add("cudaLaunchKernel", begin_us + 5 * depth + 3, 6.0)
        on_gpu = {"device_type": DeviceType.CUDA, "device_resource_id": 7}
        self._add(kernel, self._device_us, took_us, launch.id, **on_gpu)
        self._device_us += took_us + 1.0
        self._host_us += inner_us + 1.0


def eager_profile() -> Profile:
    """Return the profile of a call that takes 80 µs on the GPU, with the gaps between its kernels."""
    at = vit_s(device="cuda", timing="device-cold", dtype="bfloat16")
    events = Eager().events
    profiler: Any = SimpleNamespace(events=lambda: events)
    calls = recorded(profiler, "call")
    by_kind = operators(profiler, calls, CUDA), stages(calls, CUDA), kernels(calls[-1])
    return Profile(Case(at, "eager"), ORIGIN, 1, 80e-6, 82e-6, *by_kind)
