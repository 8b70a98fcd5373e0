"""What an exception says about the case that raised it: how it ends, and in which words."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

import impls
from bench.measure import compilation
from bench.measure.gate import Incorrect
from bench.measure.outcome import Outcome
from bench.measure.process_state import LeftChanged


@contextmanager
def caught(outcome: Outcome, device: str) -> Iterator[None]:
    """End the case by what is raised inside."""
    try:
        yield
    except Exception as error:
        end(outcome, device, error)


def end(outcome: Outcome, device: str, error: Exception, prefix: str = "") -> None:
    """End the case by an exception; `prefix` stands before its words.

    The process ends if the error left a GPU unusable for it.
    """
    _end_if_poisoned(device, error)
    outcome.end(_status(error), prefix + _words(error))


def _end_if_poisoned(device: str, error: Exception) -> None:
    """Let the process end if an error left a GPU unusable for it.

    The engine blames who was at work, and goes on with another process.
    """
    if device == "cpu" or not torch.cuda.is_initialized():
        return
    try:
        torch.cuda.synchronize(device)
    except RuntimeError:
        raise SystemExit(_words(error)) from None


def _status(error: Exception) -> str:
    if isinstance(error, impls.Unsupported):
        return "unsupported"
    if isinstance(error, Incorrect):
        return "incorrect"
    if is_out_of_memory(error):
        return "oom"
    if compilation.gave_up(error):
        return "fallback"
    return "unsupported" if is_not_implemented(error) else "error"


def is_not_implemented(error: Exception) -> bool:
    """Return whether torch says that it has no such kernel here, or no compiler to make one with."""
    said = str(error)
    return isinstance(error, NotImplementedError) or "not implemented for" in said or compilation.is_missing(said)


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an exception says that memory ran out: Python's, CUDA's, or the CPU allocator's."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def _words(error: Exception) -> str:
    if isinstance(error, impls.Unsupported | impls.Unresolved | Incorrect | LeftChanged):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
