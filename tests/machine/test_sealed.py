"""Files without a name that nobody can change once they are sealed."""

import os
from collections.abc import Iterator

import pytest

from bench.machine import sealed

PARTS = [memoryview(b"one"), memoryview(b""), memoryview(b"another")]


def test_a_filled_file_has_all_parts_and_takes_no_more() -> None:
    """It is sealed then, for every descriptor of it."""
    file = sealed.made()
    assert not sealed.is_sealed(file)
    sealed.fill(file, PARTS)
    assert sealed.is_sealed(file)
    assert os.pread(file, 99, 0) == b"oneanother"
    with pytest.raises(PermissionError):
        os.pwrite(file, b"x", 0)


def test_what_another_process_writes_meanwhile_is_seen() -> None:
    """Bytes in between, bytes at the end, and bytes in place of others."""
    for place in (0, 3, 10):
        file = sealed.made()

        def parts(file: int = file, place: int = place) -> Iterator[memoryview]:
            yield from PARTS
            os.pwrite(file, b"x", place)

        with pytest.raises(OSError, match="another process wrote"):
            sealed.fill(file, parts())
