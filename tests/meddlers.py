"""Implementations that compute the layer's function and leave the state of the process changed for everybody else."""

import gc
import os
import signal
import time
from collections.abc import Callable

import torch
from torch import nn

from impls import Adapt, Implementation
from tests.make.adapters import honest


def _when_built(change: Callable[[], object]) -> Adapt:
    """Return an adapter that makes a change before it returns the layer."""

    def adapt(layer: nn.Module) -> Implementation:
        change()
        return layer

    return adapt


def _when_timed(change: Callable[[], object]) -> Adapt:
    """Return an adapter of the layer that makes a change in the first call of the rounds."""
    return honest(change, lambda: not gc.isenabled(), once=True)


def _more_threads() -> None:
    torch.set_num_threads(torch.get_num_threads() + 1)


def _slow_clock() -> None:
    now = time.perf_counter
    time.perf_counter = lambda: now() / 2


threads_when_built = _when_built(_more_threads)
threads_when_called = honest(_more_threads)
threads_when_timed = _when_timed(_more_threads)
denormals = honest(lambda: torch.set_flush_denormal(True))
device = _when_built(lambda: torch.set_default_device("meta"))
dtype = _when_built(lambda: torch.set_default_dtype(torch.float64))
gradients = _when_built(lambda: torch.set_grad_enabled(False))
variable = _when_timed(lambda: os.environ.update(OMP_WAIT_POLICY="active"))
no_home = honest(lambda: os.environ.pop("HOME", None))
alarm = _when_built(lambda: signal.alarm(1))
clock = _when_timed(_slow_clock)
garbage = _when_timed(gc.enable)

SAYS = {
    "threads_when_built": "left torch's threads changed: 2 instead of 1",
    "threads_when_called": "left torch's threads changed: 2 instead of 1",
    "threads_when_timed": "left torch's threads changed: 2 instead of 1",
    "denormals": "left flush_denormal changed: True instead of False",
    "device": "left the default device changed: meta instead of None",
    "dtype": "left the default dtype changed: torch.float64 instead of torch.float32",
    "gradients": "left the gradient mode changed: False instead of True",
    "variable": "left the environment variable OMP_WAIT_POLICY changed: active instead of nothing",
    "no_home": "left the environment variable HOME changed: nothing instead of",
    "alarm": "left the timer ITIMER_REAL changed: pending instead of nothing",
    "clock": "left time.perf_counter changed",
    "garbage": "left garbage collection changed: True instead of False",
}
"""What is said of each; every other part of the state is changed where the state itself is tested."""
