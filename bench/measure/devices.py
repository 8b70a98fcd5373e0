"""The devices of this machine: select, synchronize and time them, and read their state."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import torch
from torch.nn import functional as F  # noqa: N812 - PyTorch's own convention
from torch.profiler import ProfilerActivity

from bench.machine import nvml
from bench.measure import clock, cuda, memory
from bench.plan.device import CUDA, Kind, kind


@dataclass(frozen=True)
class Device:
    """The CPU; a GPU overrides what differs there."""

    name: str
    activities: ClassVar[Sequence[ProfilerActivity]] = (ProfilerActivity.CPU,)
    """What a profiler must record."""

    @property
    def kind(self) -> Kind:
        """The kind of device, with its fixed properties."""
        return kind(self.name)

    @property
    def place(self) -> str:
        """The device of its tensors, as torch names it."""
        return self.name

    @property
    def obstacle(self) -> str:
        """The reason why this machine has no such device, empty if it has it."""
        return ""

    def choose(self) -> None:
        """Make it the device of this process."""

    def synchronize(self) -> None:
        """Wait until its work is done."""

    def timer(self, timing: str) -> clock.Timer:  # noqa: ARG002 - a GPU has several
        """Return the timer for a value of the column `timing`."""
        return clock.host

    def peak_bytes(self, call: clock.Call) -> int:
        """Return the peak bytes that a call allocates; on a CPU in this thread."""
        return memory.peak_bytes(call)

    def free_bytes(self) -> int | None:
        """Return the free bytes of its own memory; None if it has none or is not in use yet."""
        return None

    def energy_j(self) -> float | None:
        """Return the joules that it has used since some fixed time; None without a readable counter."""
        return None

    @property
    def is_exclusive(self) -> bool:
        """Whether only one process can use it at a time."""
        return False

    def states(self) -> nvml.States | None:
        """Return a reader of its clock rate, power and temperature; None for a CPU."""
        return None

    def is_lost(self) -> bool:
        """Return whether an error has made it unusable for this process."""
        return False


@dataclass(frozen=True)
class Gpu(Device):
    """An NVIDIA GPU, to which work is queued."""

    activities: ClassVar[Sequence[ProfilerActivity]] = (ProfilerActivity.CPU, ProfilerActivity.CUDA)

    @property
    def obstacle(self) -> str:
        """The reason why this machine has no such device, empty if it has it."""
        if not torch.cuda.is_available():
            return f"no CUDA device (see docs/gpu.md): torch {torch.__version__} sees none: {_why_no_cuda()}"
        if self.index >= torch.cuda.device_count():
            return f"no device {self.name}: this machine has {torch.cuda.device_count()} CUDA device(s)"
        return ""

    @property
    def index(self) -> int:
        """Its number among the GPUs that torch sees."""
        return torch.device(self.name).index or 0

    def choose(self) -> None:
        """Make it the device of this process, and call SDPA once, because the first call sets the order of backends."""
        torch.cuda.set_device(self.index)
        F.scaled_dot_product_attention(*torch.zeros(3, 1, 1, 1, 8, device=self.place))

    def synchronize(self) -> None:
        """Wait until its work is done."""
        torch.cuda.synchronize(self.name)

    def timer(self, timing: str) -> clock.Timer:
        """Return the timer for a value of the column `timing`."""
        return cuda.timer(timing)

    def peak_bytes(self, call: clock.Call) -> int:
        """Return the peak bytes that a call allocates."""
        return cuda.peak_bytes(call, self.name)

    def free_bytes(self) -> int | None:
        """Return the free bytes of its own memory; None if it is not in use yet."""
        return torch.cuda.mem_get_info()[0] if torch.cuda.is_initialized() else None

    def energy_j(self) -> float | None:
        """Return the joules that its board has used; None if NVML has no counter."""
        return nvml.energy_j(self._uuid)

    @property
    def is_exclusive(self) -> bool:
        """Whether only one process can use it at a time; False if there is no such device."""
        return not self.obstacle and nvml.is_exclusive(self._uuid)

    @property
    def _uuid(self) -> str:
        return str(torch.cuda.get_device_properties(self.name).uuid)

    def states(self) -> nvml.States | None:
        """Return a reader of its clock rate, power and temperature."""
        return nvml.States(self._uuid)

    def is_lost(self) -> bool:
        """Return whether an error has made it unusable for this process."""
        if not torch.cuda.is_initialized():
            return False
        try:
            self.synchronize()
        except RuntimeError:
            return True
        return False


def _why_no_cuda() -> str:
    """Return torch's reason why this process can't use CUDA, such as a driver that is too old."""
    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as error:  # the second if it is built without CUDA
        return " ".join(str(error).split())
    return "it gives no reason"


@cache
def device(name: str) -> Device:
    """Return a device by its name: cpu, cuda or cuda:<number>."""
    return Gpu(name) if kind(name) is CUDA else Device(name)
