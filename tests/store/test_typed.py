"""Values that are checked by declared types."""

from typing import Any

import pytest

from bench.store.typed import Amount, Count, convert, decode


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (int, b"{"),
        (int, b"[" * 100_000),
        (list[Count], b"[1, -1]"),
        (list[Amount], b"[NaN]"),
        (tuple[bool, ...], b"[1]"),
    ],
)
def test_what_has_another_type_is_told_in_one_line(kind: Any, content: bytes) -> None:
    """As msgspec says it."""
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is a library's
        decode(kind, content)
    assert len(str(error.value).splitlines()) == 1


def test_text_that_utf8_can_not_hold_is_text() -> None:
    """Python writes half of a surrogate pair for a byte that is none, and messages of foreign programs hold some."""
    assert decode(list[str], b'["\\udcff.so"]') == ["\udcff.so"]


def test_a_value_has_a_name() -> None:
    """It stands before the message, and a list becomes a tuple where that is the type."""
    assert convert([1, 2], tuple[int, ...]) == (1, 2)
    with pytest.raises(ValueError, match=r"^kernels: "):
        convert(["a", 2], tuple[str, ...], "kernels")
