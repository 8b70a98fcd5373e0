"""Implementations that a benchmark on a GPU must not reward: hacks seen in kernels, and hacks that a hold allows.

EXPECTED says how each ends on a GPU, including the hacks of `tests.hacks` that work there.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from bench.measure import cuda
from tests.hacks import LATE, TIMED, _half, _in_rounds
from tests.make.adapters import Own, each_call, honest

UNJOINED = "incorrect: (output|works on another stream)"
PATCHED = "error: left .*(elapsed_time|_elapsed_ms) changed"
EXPECTED = {
    "tests.hacks:side_stream": UNJOINED,
    "tests.hacks:memo_by_address": LATE,
    "tests.hacks:background_thread": LATE,
    "tests.hacks_of_gpu:thread_with_a_stream": UNJOINED,
    "tests.hacks_of_gpu:joins_if_looked_at": UNJOINED,
    "tests.hacks_of_gpu:works_in_the_hold": TIMED,
    "tests.hacks_of_gpu:one_of_fifteen": LATE,
    "tests.hacks_of_gpu:half_while_held": TIMED,
    "tests.hacks_of_gpu:half_after_the_warm_up": TIMED,
    "tests.hacks_of_gpu:patches_events": PATCHED,
    "tests.hacks_of_gpu:leaves_its_stream": "error: left the current stream changed",
}
"""A pattern for the status and the detail of each."""


@contextmanager
def _elsewhere(own: Own, *, waits: bool, is_joined: bool) -> Iterator[None]:
    """Work on a stream of its own, which may wait for the current one, and be waited for."""
    if "stream" not in own.kept:
        own.kept["stream"] = torch.cuda.Stream()
    stream, current = own.kept["stream"], torch.cuda.current_stream()
    if waits:
        stream.wait_stream(current)
    with torch.cuda.stream(stream):
        yield
    if is_joined:
        current.wait_stream(stream)


@each_call
def thread_with_a_stream(own: Own, x: Tensor) -> Tensor:
    """Returns at once, and a thread fills the output on a stream of its own."""
    y = torch.empty_like(x)
    current = torch.cuda.current_stream()

    def fill() -> None:
        with torch.cuda.stream(current), _elsewhere(own, waits=True, is_joined=False), torch.inference_mode():
            y.copy_(own(x))

    threading.Thread(target=fill, daemon=True).start()
    return y


def _is_looked_at() -> bool:
    """Return whether the call comes from the look for late work."""
    frame = sys._getframe()
    while frame.f_back:
        frame = frame.f_back
        if frame.f_code is cuda._late_s.__code__:
            return True
    return False


@each_call
def joins_if_looked_at(own: Own, x: Tensor) -> Tensor:
    """Works on its own stream, which it joins only if that is checked."""
    with _elsewhere(own, waits=True, is_joined=_is_looked_at()):
        return own(x)


@each_call
def works_in_the_hold(own: Own, x: Tensor) -> Tensor:
    """Works while the current stream is held, on another one that is joined before the time ends."""
    with _elsewhere(own, waits=not _in_rounds(), is_joined=True):
        return own(x)


@each_call
def one_of_fifteen(own: Own, x: Tensor) -> Tensor:
    """Leaves fourteen of fifteen timed calls empty."""
    return own(x) if not _in_rounds() or own.calls % 15 == 0 else torch.empty_like(x)


@each_call
def half_while_held(own: Own, x: Tensor) -> Tensor:
    """Computes half of the batch if the stream is busy, which it is in timings alone."""
    return _half(own, x, unless=torch.cuda.current_stream().query())


@each_call
def half_after_the_warm_up(own: Own, x: Tensor) -> Tensor:
    """Computes half of the batch once the warm-up is over."""
    return _half(own, x, unless=not _in_rounds())


_real_ms = cuda._elapsed_ms


def _half_ms(start: torch.cuda.Event, end: torch.cuda.Event) -> float:
    return _real_ms(start, end) / 2


def _patch_events() -> None:
    torch.cuda.Event.elapsed_time = _half_ms  # type: ignore[assignment, method-assign]
    cuda._elapsed_ms = _half_ms


patches_events = honest(_patch_events, _in_rounds, once=True)
"""Halves the times between events in torch's function and in the measurement's."""


def _leave_the_stream() -> None:
    torch.cuda.set_stream(torch.cuda.Stream())


leaves_its_stream = honest(_leave_the_stream, _in_rounds, once=True)
"""Lets another stream be the current one from now on."""
