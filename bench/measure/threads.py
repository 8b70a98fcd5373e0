"""The threads of this process: the core that they run on, and the processor's seconds that each kind has used."""

import ctypes
import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import torch

CLOCK_OF_THREAD = 6
"""The low bits of the number of a clock that Linux has for each thread."""


class Used(NamedTuple):
    """The processor's seconds of the main thread, of the threads of torch's OpenMP, and of other threads."""

    main_s: float = 0.0
    team_s: float = 0.0
    others_s: float = 0.0

    @property
    def all_s(self) -> float:
        """The seconds of all threads."""
        return sum(self)

    def plus(self, other: "Used") -> "Used":
        """Return the sum with other seconds."""
        return Used(*map(float.__add__, self, other))

    def since(self, earlier: "Used") -> "Used":
        """Return the seconds since an earlier reading."""
        return Used(*map(float.__sub__, self, earlier))


class Threads:
    """The threads of this process; made in the main one before any code of a user runs.

    OpenMP's threads work only while the main thread waits for them, and spin a little afterwards. They are known as
    those that run a parallel region of the main thread, which no other thread can enter. None are known of an OpenMP
    that is no part of torch's, or where the system has no clock for each thread.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._seen_s: dict[int, float] = {}
        self._team_s = 0.0
        self.find()

    def find(self) -> None:
        """Look for the threads of OpenMP: it ends some and starts others if the size of its teams changes."""
        for each in _team(self._threads) - self._seen_s.keys():
            with suppress(OSError):
                self._seen_s[each] = _thread_s(each)

    @property
    def has_lost(self) -> bool:
        """Whether some of the threads of OpenMP have ended since they were found."""
        return len(self._seen_s) < self._threads - 1

    def read(self) -> Used:
        """Return the seconds so far.

        The clock of the process lags behind by up to a tick of the system, for each thread that runs meanwhile. To read
        the clock of a thread first brings it up to date.
        """
        for each, seen_s in [*self._seen_s.items()]:
            try:
                self._seen_s[each] = _thread_s(each)
                self._team_s += self._seen_s[each] - seen_s
            except OSError:  # it has ended
                del self._seen_s[each]
        process_s, main_s = time.process_time(), time.thread_time()
        return Used(main_s, self._team_s, process_s - main_s - self._team_s)


def run_on(core: int) -> None:
    """Let all threads of this process run on one core alone: those that a row has started as well, on Linux."""
    for each in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):  # it has ended
            os.sched_setaffinity(int(each.name), {core})


def _thread_s(thread: int) -> float:
    return time.clock_gettime(~thread << 3 | CLOCK_OF_THREAD)


def _team(threads: int) -> set[int]:
    """Return the system's ids of the threads that run a parallel region of this one, without its own."""
    if threads == 1 or sys.platform != "linux":
        return set()
    ids = {threading.get_native_id()}
    note = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: ids.add(threading.get_native_id()))
    try:
        parallel = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so")).GOMP_parallel
    except (OSError, AttributeError):  # another build of torch, or another OpenMP
        return set()
    parallel(note, None, ctypes.c_uint(threads), ctypes.c_uint(0))
    return ids - {threading.get_native_id()}
