"""Denormal numbers: how many weights and results are denormal, and how much longer they make a call on a CPU."""

import ctypes
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from bench.measure import clock

ENVIRONMENT_BYTES, FLAGS_AT = 64, 28
"""The room for a floating-point environment, and where SSE's flags stand in it. Source: fenv.h of glibc on x86-64."""

FLAGS, DENORMAL = 0x3F, 0x02
"""All of these flags, which stay until they are cleared, and the one for an operand that is denormal."""

PAIRS = 3
"""The pairs of calls that tell what denormal numbers cost: the fastest of each kind counts."""


def found(call: Callable[[], object], weights: Sequence[Tensor]) -> dict[str, Any]:
    """Return how many weights and results of a call are denormal, of how many, and what such numbers cost a call.

    The cost is how many times as long a call takes as one for which this thread takes denormal numbers as 0; None if it
    meets none. Another thread's are not seen.
    """
    with _watched() as met:
        results = [each for each in tree_leaves(call()) if isinstance(each, Tensor)]
        is_met = met()
    counts = {
        name: (sum(map(_count, values)), sum(value.numel() for value in values))
        for name, values in (("weights", weights), ("numbers of the results", results))
    }
    is_met = is_met or any(count for count, _ in counts.values())
    return {"denormals": counts, "denormal_slowdown": _slowdown(call) if is_met else None}


def _count(tensor: Tensor) -> int:
    """Return how many values are denormal numbers; those of float16 are none to a CPU, which computes in float32."""
    least = torch.finfo(torch.float64 if tensor.dtype == torch.float64 else torch.float32).tiny
    return int(((tensor != 0) & (tensor.abs() < least)).sum()) if tensor.is_floating_point() else 0


@contextmanager
def _watched() -> Iterator[Callable[[], bool]]:
    """Yield a function that says if this thread has met a denormal number since; never without glibc on x86."""
    library, environment = _library(), ctypes.create_string_buffer(ENVIRONMENT_BYTES)
    if library is None:
        yield lambda: False
        return
    library.fegetenv(environment)
    cleared = bytearray(environment.raw)
    cleared[FLAGS_AT] &= ~FLAGS
    library.fesetenv(bytes(cleared))

    def met() -> bool:
        library.fegetenv(environment)
        return bool(environment.raw[FLAGS_AT] & DENORMAL)

    yield met


@cache
def _library() -> Any:
    if platform.machine() not in ("x86_64", "AMD64"):
        return None
    try:
        return ctypes.CDLL("libm.so.6")
    except OSError:
        return None


def _slowdown(call: Callable[[], object]) -> float:
    times_s: dict[bool, list[float]] = {False: [], True: []}
    for flushes in (False, True) * PAIRS:
        torch.set_flush_denormal(flushes)
        try:
            times_s[flushes].append(clock.host(call, 1).call_s)
        finally:
            torch.set_flush_denormal(False)
    return min(times_s[False]) / min(times_s[True])
