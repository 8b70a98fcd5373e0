"""Implementations that compute the layer's function and leave the state of the process changed for everybody else."""

import gc
import os
import signal
import tempfile
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from impls import Adapt, Implementation
from tests.adapters import Own, each_call


def _when_built(change: Callable[[], object]) -> Adapt:
    """Return an adapter that makes a change before it returns the layer."""

    def adapt(layer: nn.Module) -> Implementation:
        change()
        return layer

    return adapt


def _when_called(change: Callable[[], object]) -> Adapt:
    """Return an adapter of the layer that makes a change at the end of each call."""

    def work(own: Own, x: Tensor) -> Tensor:
        y = own(x)
        change()
        return y

    return each_call(work)


def _when_timed(change: Callable[[], object]) -> Adapt:
    """Return an adapter of the layer that makes a change in the fifth call of the rounds."""

    def work(own: Own, x: Tensor) -> Tensor:
        own.kept["timed"] = own.kept.get("timed", 0) + (not gc.isenabled())  # as it is in the rounds
        if own.kept["timed"] == 5:
            change()
        return own(x)

    return each_call(work)


def _more_threads() -> None:
    torch.set_num_threads(torch.get_num_threads() + 1)


def bfloat16_in_mkldnn() -> None:
    """Have oneDNN compute products of float32 in bfloat16."""
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"  # type: ignore[attr-defined]  # torch puts an object there


def _slow_clock() -> None:
    now = time.perf_counter
    time.perf_counter = lambda: now() / 2


threads_when_built = _when_built(_more_threads)
threads_when_called = _when_called(_more_threads)
threads_when_timed = _when_timed(_more_threads)
denormals = _when_called(lambda: torch.set_flush_denormal(True))
precision = _when_built(lambda: torch.set_float32_matmul_precision("medium"))
precision_by_backend = _when_called(bfloat16_in_mkldnn)
no_flash = _when_called(lambda: torch.backends.cuda.enable_flash_sdp(False))
device = _when_built(lambda: torch.set_default_device("meta"))
dtype = _when_built(lambda: torch.set_default_dtype(torch.float64))
deterministic = _when_timed(lambda: torch.use_deterministic_algorithms(True))
gradients = _when_built(lambda: torch.set_grad_enabled(False))
variable = _when_timed(lambda: os.environ.update(OMP_WAIT_POLICY="active"))
no_home = _when_called(lambda: os.environ.pop("HOME", None))
directory = _when_called(lambda: os.chdir(tempfile.gettempdir()))
alarm = _when_built(lambda: signal.alarm(1))
clock = _when_timed(_slow_clock)
garbage = _when_timed(gc.enable)

SAYS = {
    "threads_when_built": "left torch's threads changed: 2 instead of 1",
    "threads_when_called": "left torch's threads changed: 2 instead of 1",
    "threads_when_timed": "left torch's threads changed: 2 instead of 1",
    "denormals": "left flush_denormal changed: True instead of False",
    "precision": "left the float32 matmul precision changed: medium instead of highest",
    "precision_by_backend": "the float32 precision of mkldnn.matmul changed: bf16 instead of",
    "no_flash": "left flash_sdp changed: False instead of True",
    "device": "left the default device changed: meta instead of None",
    "dtype": "left the default dtype changed: torch.float64 instead of torch.float32",
    "deterministic": "left deterministic algorithms changed: (True, False) instead of (False, False)",
    "gradients": "left the gradient mode changed: False instead of True",
    "variable": "left the environment variable OMP_WAIT_POLICY changed: active instead of nothing",
    "no_home": "left the environment variable HOME changed: nothing instead of",
    "directory": "left the working directory changed",
    "alarm": "left the timer ITIMER_REAL changed: pending instead of nothing",
    "clock": "left time.perf_counter changed",
    "garbage": "left garbage collection changed: True instead of False",
}
"""What is said of each."""
