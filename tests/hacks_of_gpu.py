"""Implementations that a benchmark on a GPU must not reward: what was seen in kernels, and what a hold makes possible.

EXPECTED says how each ends on a GPU, those of `tests.hacks` that work there among them.
"""

import ctypes
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from bench.measure import cuda
from tests.hacks import LATE, TIMED, _half, _in_rounds
from tests.make.adapters import Own, each_call, honest

UNJOINED = "incorrect: (output|works on another stream)"
PATCHED = "error: left .*(elapsed_time|_elapsed_ms|Event.__bases__) changed"
SLOW_S = 0.05
"""Longer than a hold."""

EXPECTED = {
    "tests.hacks:side_stream": UNJOINED,
    "tests.hacks:memo_by_address": LATE,
    "tests.hacks:settles": r"incorrect: output is a _Settling, expected a plain torch.Tensor \(in a timed call\)",
    "tests.hacks:background_thread": LATE,
    "tests.hacks_of_gpu:thread_with_a_stream": UNJOINED,
    "tests.hacks_of_gpu:joins_if_looked_at": UNJOINED,
    "tests.hacks_of_gpu:works_in_the_hold": TIMED,
    "tests.hacks_of_gpu:works_in_the_hold_of_a_repeat": TIMED,
    "tests.hacks_of_gpu:one_of_fifteen": LATE,
    "tests.hacks_of_gpu:half_while_held": TIMED,
    "tests.hacks_of_gpu:half_after_the_warm_up": TIMED,
    "tests.hacks_of_gpu:patches_events": PATCHED,
    "tests.hacks_of_gpu:patches_events_for_a_moment": PATCHED,
    "tests.hacks_of_gpu:replaces_the_base_of_events": PATCHED,
    "tests.hacks_of_gpu:persists_in_l2": "error: left the bytes of L2 that may persist changed",
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
    """Works on a stream of its own, which is joined only if somebody looks for that."""
    with _elsewhere(own, waits=True, is_joined=_is_looked_at()):
        return own(x)


@each_call
def works_in_the_hold(own: Own, x: Tensor) -> Tensor:
    """Works while the current stream is held, on another one that is joined before the time ends."""
    with _elsewhere(own, waits=not _in_rounds(), is_joined=True):
        return own(x)


@each_call
def works_in_the_hold_of_a_repeat(own: Own, x: Tensor) -> Tensor:
    """Makes a timing void, and does the same when it is repeated: its inputs are then there already."""
    kept = own.kept
    if _in_rounds() and id(x) == kept.setdefault("first", id(x)):
        kept["is_repeat"] = not kept.get("is_repeat", True)
        if not kept["is_repeat"]:
            time.sleep(SLOW_S)
    with _elsewhere(own, waits=not kept.get("is_repeat"), is_joined=True):
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


def _patch_for_a_moment() -> None:
    """Let the next time be half, and remove all traces by it."""
    real = cuda._elapsed_ms

    def half(start: torch.cuda.Event, end: torch.cuda.Event) -> float:
        cuda._elapsed_ms = real
        return real(start, end) / 2

    cuda._elapsed_ms = half


def _replace_the_base() -> None:
    base: Any = torch.cuda.Event.__bases__[0]
    half = {"elapsed_time": lambda start, end: base.elapsed_time(start, end) / 2}
    torch.cuda.Event.__bases__ = (type("Half", (base,), half),)


patches_events = honest(_patch_events, _in_rounds, once=True)
"""Halves the times between events, by torch's function and by that of the measurement."""

patches_events_for_a_moment = honest(_patch_for_a_moment, _in_rounds)
"""Halves the next time, and has put the function back when the state is compared."""

replaces_the_base_of_events = honest(_replace_the_base, _in_rounds, once=True)
"""Halves the times between events by the class that torch's class asks."""


class _Window(ctypes.Structure):
    """`CUaccessPolicyWindow`, in the room of a `CUstreamAttrValue`."""

    _fields_ = (
        ("base", ctypes.c_void_p), ("num_bytes", ctypes.c_size_t), ("hit_ratio", ctypes.c_float),
        ("hit", ctypes.c_int), ("miss", ctypes.c_int), ("room", ctypes.c_char * 32),
    )  # fmt: skip


ACCESS_POLICY_WINDOW, PERSISTING = 1, 2
"""`CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW` and `CU_ACCESS_PROPERTY_PERSISTING`."""


def _checked(status: int) -> None:
    if status:
        raise RuntimeError(f"CUDA's driver answers {status}")


@each_call
def persists_in_l2(own: Own, x: Tensor) -> Tensor:
    """Lets what it reads persist in L2, so that it is still there after L2 was overwritten."""
    if _in_rounds():
        driver = cuda.driver()
        _checked(driver.cuCtxSetLimit(cuda.PERSISTING_L2, ctypes.c_size_t(x.nbytes)))
        window = _Window(x.data_ptr(), x.nbytes, 1.0, PERSISTING, 0, b"")
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        _checked(driver.cuStreamSetAttribute(stream, ACCESS_POLICY_WINDOW, ctypes.byref(window)))
    return own(x)


def _leave_the_stream() -> None:
    torch.cuda.set_stream(torch.cuda.Stream())


leaves_its_stream = honest(_leave_the_stream, _in_rounds, once=True)
"""Lets another stream be the current one from now on."""
