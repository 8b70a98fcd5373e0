"""The core that a thread runs on, if the system lets us choose it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def bound_to(core: int | None) -> Iterator[None]:
    """Keep the calling thread on one core inside; no effect if `core` is None or the system doesn't let us choose."""
    if core is None or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
