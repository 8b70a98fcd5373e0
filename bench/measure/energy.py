"""The energy of a call: what the counter of the device says over calls that are made for it, after the rounds.

Slots are no use for it: on a GPU they hold the overwriting of L2, and counters move in steps as long as many slots
(RAPL every millisecond, NVML every 20 to 100). So calls follow each other without a pause, and the energy is that from
one step of the counter to another.
It is the energy of the whole device meanwhile, of all its cores and when it idles too.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from time import perf_counter

import torch

from bench.measure import gpu_state
from bench.measure.clock import Call

POWERCAP = Path("/sys/class/powercap")
"""Where Linux has a zone for each CPU package. Source: Documentation/power/powercap/powercap.rst."""

SPAN_S = 0.2
"""The calls between the first step of the counter and the last take so long at least."""

BATCH_S = 0.01
"""The counter is read after calls that take about so long: reading it takes up to a tenth of a millisecond."""

STILL_S = 1.0
"""A counter that doesn't move for so long tells nothing."""

Counter = Callable[[], float]
"""Returns the joules that a device has taken, from any start."""


@dataclass
class Zone:
    """A zone of RAPL: a counter in microjoules that starts again at 0 after its largest value."""

    folder: Path
    wraps_uj: int
    latest_uj: int
    taken_uj: int = 0

    def read(self) -> int:
        """Return the microjoules since the zone was opened; raises OSError or ValueError if it can't be read."""
        now_uj = _number(self.folder / "energy_uj")
        self.taken_uj += now_uj - self.latest_uj + (self.wraps_uj if now_uj < self.latest_uj else 0)
        self.latest_uj = now_uj
        return self.taken_uj


def counter(device: str) -> Counter | None:
    """Return the energy counter of a device, None if it has none that can be read."""
    return _of_packages() if device == "cpu" else _of_gpu(device)


def per_call_j(read: Counter, call: Call, call_s: float, device: str = "cpu") -> float | None:
    """Return the joules of one call, which takes about `call_s`; None if the counter stands still or can't be read.

    More calls are made than are counted: those before the first step of the counter and after the last.
    """
    calls = max(1, math.ceil(BATCH_S / call_s))
    try:
        return _between_steps(read, lambda: _batch(call, calls, device), calls)
    except UnreadableError:
        return None


class UnreadableError(Exception):
    """The counter could be read before and can't be now."""


def _between_steps(read: Counter, batch: Callable[[], None], calls: int) -> float | None:
    start_j, start_s, made = math.nan, math.nan, 0
    latest_j, moved_s = read(), perf_counter()
    while True:
        batch()
        made += calls
        now_j, now_s = read(), perf_counter()
        if now_j > latest_j:
            latest_j, moved_s = now_j, now_s
            if math.isnan(start_j):
                start_j, start_s, made = now_j, now_s, 0
            elif now_s - start_s >= SPAN_S:
                return (now_j - start_j) / made
        elif now_s - moved_s > STILL_S:
            return None


def _batch(call: Call, calls: int, device: str) -> None:
    for _ in repeat(None, calls):
        call()
    if device != "cpu":
        torch.cuda.synchronize(device)


def _of_packages() -> Counter | None:
    """Return the joules of all CPU packages together; None if one of them can't be read."""
    try:
        folders = [folder for folder in sorted(POWERCAP.glob("intel-rapl:*")) if _name(folder).startswith("package")]
        zones = [
            Zone(folder, _number(folder / "max_energy_range_uj"), _number(folder / "energy_uj")) for folder in folders
        ]
    except (OSError, ValueError):
        return None

    def read() -> float:
        try:
            return sum(zone.read() for zone in zones) / 1e6
        except (OSError, ValueError) as error:
            raise UnreadableError from error

    return read if zones else None


def _of_gpu(device: str) -> Counter | None:
    """Return the joules of a GPU's board."""
    try:
        import pynvml
    except ImportError:
        return None

    def read() -> float:
        try:
            return float(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) / 1e3
        except pynvml.NVMLError as error:
            raise UnreadableError from error

    try:
        handle = gpu_state.handle(device)
        read()
    except (pynvml.NVMLError, UnreadableError):
        return None
    return read


def _name(folder: Path) -> str:
    return (folder / "name").read_text(encoding="utf-8").strip()


def _number(file: Path) -> int:
    return int(file.read_text(encoding="utf-8"))
