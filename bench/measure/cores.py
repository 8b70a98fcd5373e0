"""The core that a thread runs on, where the system lets it be chosen."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def bound_to(core: int | None) -> Iterator[None]:
    """Keep the calling thread on one core meanwhile; nothing happens for None, or where cores can't be chosen."""
    if core is None or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
