"""A disk that is full."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def full_after(size: int) -> Iterator[None]:
    """Let no file grow beyond a size: the system takes what still fits, and refuses the rest."""
    resource = pytest.importorskip("resource", reason="only POSIX can limit the size of files")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
