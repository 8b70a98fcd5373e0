"""The outcome of a case in one process, also if it ends with an exception."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import torch

import impls
from bench.measure import compilation, user_code
from bench.measure.devices import device
from bench.measure.outputs import Fallback, Incorrect, NotHandedOver
from bench.measure.process_state import LeftChanged
from bench.sampling.requests import Outcome

NO_MEMORY = ("can't allocate memory", "CUDA error: out of memory", "_STATUS_ALLOC_FAILED")
"""What messages say if memory ran out, of the CPU's allocator, of the CUDA driver, and of cuBLAS and cuDNN."""

NO_COMPILER = (
    "No working C++ compiler",
    "Failed to find C compiler",
    "Cannot find a working triton installation",
    "too old to be supported by the triton GPU compiler",
)
"""The texts in which Inductor and Triton say that the machine has no compiler."""

COMPILING = "CppCompileError"
"""What the first line of Inductor's message names if a C++ compiler refused its code."""

OF_CUDA = "CUDA error"
"""What the first line of a CUDA error has, whose further lines say how to debug it."""

NO_ROOM = tuple(map(os.strerror, (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE)))
"""What the system says of a full disk and of a limit on files: the case is not the cause."""

OF_COMPILER = re.compile(r"(?:\b(?:fatal )?error: (?!ld returned)|\bld: )(.+)")
"""The line in which a C++ compiler or its linker says what it can't do; Inductor quotes it after the command."""


@contextmanager
def caught(outcome: Outcome, device: str, prefix: str = "") -> Iterator[None]:
    """End the case with any exception that is raised inside.

    `prefix` is put before the message, unless that names a layer or an implementation by itself.
    The process exits if the error left a GPU unusable for it.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        _exit_if_unusable(device, error)
        is_named = isinstance(error, impls.Unresolved | impls.Unsupported)
        outcome.end(_status(error), ("" if is_named else prefix) + _message(error))
        if isinstance(error, NotHandedOver) or any(words in str(error) for words in NO_ROOM):
            outcome.own_cause = False


def _exit_if_unusable(name: str, error: BaseException) -> None:
    if not is_out_of_memory(error) and device(name).is_lost():
        raise SystemExit(_message(error)) from None


def _status(error: BaseException) -> str:
    if isinstance(error, impls.Unsupported):
        return "unsupported"
    if isinstance(error, Incorrect):
        return "incorrect"
    if is_out_of_memory(error):
        return "oom"
    if isinstance(error, Fallback) or (isinstance(error, Exception) and compilation.gave_up(error)):
        return "fallback"
    says_so = any(words in str(error) for words in ("not implemented for", *NO_COMPILER))
    return "unsupported" if says_so or isinstance(error, NotImplementedError) else "error"


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an exception means that memory ran out: Python's, CUDA's, or the CPU allocator's."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(words in str(error) for words in NO_MEMORY)


def _message(error: BaseException) -> str:
    if isinstance(error, impls.Unsupported | impls.Unresolved | Fallback | Incorrect | LeftChanged | NotHandedOver):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    if COMPILING not in first:
        return first if OF_CUDA in first else user_code.said(error)
    reason = next(filter(None, map(OF_COMPILER.search, lines[1:])), None)
    return f"{first}: {reason[1]}" if reason else first
