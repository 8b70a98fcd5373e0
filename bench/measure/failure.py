"""Turn an exception in a case into the outcome of the case."""

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
"""Words in messages about exhausted memory, from the CPU allocator, the CUDA driver, cuBLAS and cuDNN."""

NO_COMPILER = (
    "No working C++ compiler",
    "Failed to find C compiler",
    "Cannot find a working triton installation",
    "too old to be supported by the triton GPU compiler",
)
"""Words in messages of Inductor and Triton about a missing compiler."""

COMPILING = "CppCompileError"
"""The name in the first line of Inductor's message if a C++ compiler rejected its code."""

OF_CUDA = "CUDA error"
"""Words in the first line of a CUDA error; its further lines say how to debug it."""

NO_ROOM = tuple(map(os.strerror, (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE)))
"""The system's messages about a full disk or a limit on files, which are not the fault of the case."""

OF_COMPILER = re.compile(r"(?:\b(?:fatal )?error: (?!ld returned)|\bld: )(.+)")
"""The error line of a C++ compiler or linker, which Inductor quotes after the command."""


@contextmanager
def caught(outcome: Outcome, device: str, prefix: str = "") -> Iterator[None]:
    """End the case with the status and message of an exception that is raised inside.

    `prefix` precedes the message, unless the message names a layer or an implementation itself.
    The process exits if the error has made its GPU unusable.
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
