"""The state of the process: every change of it is seen and said in words, and nothing is put back."""

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from bench.measure import clock
from bench.measure.process_state import ProcessState, kept

_mkldnn: Any = torch.backends.mkldnn
CHANGES: dict[str, Callable[[], object]] = {
    "torch's threads": lambda: torch.set_num_threads(torch.get_num_threads() + 1),
    "the default dtype": lambda: torch.set_default_dtype(torch.float64),
    "the default device": lambda: torch.set_default_device("meta"),
    "the float32 matmul precision": lambda: torch.set_float32_matmul_precision("medium"),
    "the float32 precision of mkldnn.matmul": lambda: setattr(_mkldnn.matmul, "fp32_precision", "bf16"),
    "flash_sdp": lambda: torch.backends.cuda.enable_flash_sdp(False),
    "the order of sdp backends": lambda: torch._C._set_sdp_priority_order([0, 1, 2, 3, 4]),
    "flush_denormal": lambda: torch.set_flush_denormal(True),
    "the gradient mode": lambda: torch.set_grad_enabled(False),
    "time.perf_counter": lambda: setattr(time, "perf_counter", time.monotonic),
    "bench.measure.clock.perf_counter": lambda: setattr(clock, "perf_counter", time.monotonic),
    "Event.elapsed_time": lambda: setattr(torch.cuda.Event, "elapsed_time", lambda *_: 1e-9),
    "Tensor.copy_": lambda: setattr(torch.Tensor, "copy_", lambda x, _y: x),
    "the profile function": lambda: sys.setprofile(lambda *_: None),
    "the number of dispatch modes": lambda: _enter(FlopCounterMode(display=False)),
    "the cores to run on": lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}),
}


_entered: list[Any] = []


def _enter(mode: Any) -> None:
    _entered.append(mode)  # which leaves the mode when it is forgotten
    mode.__enter__()


def in_child(function: Callable[[], str]) -> str:
    """Return the text that a function returns in a forked child, or how it failed there: its exception, or a signal.

    It must not compute with torch, whose threads don't exist in a fork.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            text = function()
        except BaseException as error:
            text = f"{type(error).__name__}: {' '.join(str(error).split())}"
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return f"ended by {signal.Signals(-status).name}" if status < 0 else text


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_named_and_stays(name: str) -> None:
    """The message names the change every time it is read, because nothing is put back."""
    if name == "the cores to run on" and (not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) == 1):
        pytest.skip("there is one core, or none can be chosen")

    def read_twice() -> str:
        state = ProcessState()
        CHANGES[name]()
        return "\n".join([state.changes(), state.changes()])

    first, second = in_child(read_twice).split("\n")
    assert first.startswith("left ")
    assert f"{name} changed: " in first
    assert first == second


def test_nothing_changed_is_nothing_said() -> None:
    """Work that leaves the state alone is not blamed, even if it changes it meanwhile."""
    state = ProcessState()
    with kept():
        with torch.inference_mode(), torch.autocast("cpu"), torch.nn.attention.sdpa_kernel([]):
            torch.ones(2, 2) @ torch.ones(2, 2)
        torch.manual_seed(1)
    state.check()
    assert state.changes() == ""
