"""Files without a name, in which one process hands bytes to another: once one is sealed, nobody can change it."""

import errno
import fcntl
import mmap
import os
import resource
import tempfile
import zlib
from collections.abc import Iterable

SEALS = ("F_SEAL_SEAL", "F_SEAL_SHRINK", "F_SEAL_GROW", "F_SEAL_WRITE")
"""The names of what a sealed file forbids for good."""


def made() -> int:
    """Return the descriptor of an empty file without a name; raises OSError if the system refuses it."""
    if _can_seal():
        return os.memfd_create("attention-bench", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def fill(descriptor: int, parts: Iterable[memoryview]) -> None:
    """Write bytes, one part after the other, and seal the file.

    Raises OSError if they don't fit, or if another process writes to it too.
    """
    written = 0
    for part in parts:
        written = zlib.crc32(part, written)
        left = part
        while left:
            left = left[os.write(descriptor, left) :]
    if _can_seal():
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _seals())
    if os.fstat(descriptor).st_size:
        with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as content:
            if zlib.crc32(content) != written:
                raise OSError("another process wrote into their file")


def is_sealed(descriptor: int) -> bool:
    """Return whether all was written and nothing can change; where the system has no seals, whether it has bytes."""
    if _can_seal():
        return fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & _seals() == _seals()
    return os.fstat(descriptor).st_size > 0


def words(error: OSError) -> str:
    """Return why bytes could not be written, with the limit of this process if that is the reason."""
    text = os.strerror(error.errno) if error.errno else str(error)
    if error.errno == errno.EFBIG:
        return f"{text} (ulimit -f lets a file have {resource.getrlimit(resource.RLIMIT_FSIZE)[0]} bytes)"
    if error.errno == errno.EMFILE:
        return f"{text} (ulimit -n lets a process have {resource.getrlimit(resource.RLIMIT_NOFILE)[0]})"
    return text


def _can_seal() -> bool:
    return hasattr(os, "memfd_create")


def _seals() -> int:
    return sum(getattr(fcntl, name) for name in SEALS)
