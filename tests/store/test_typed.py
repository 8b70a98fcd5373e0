"""Values that are checked by declared types."""

from typing import Any

import pytest

from bench.store.typed import Amount, Count, Seconds, convert, decode


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        (int, b"{", "it is not JSON"),
        (int, b"[" * 100_000, "it is not JSON"),
        (int, b'"1"', "it must be a whole number, got '1'"),
        (list[Count], b"[1, -1]", "[1] must be a whole number of at least 0, got -1"),
        (dict[str, list[Amount]], b'{"a": [NaN]}', "[...][0] must be a number of at least 0.0, got {'a': [nan]}"),
        (dict[str, Seconds], b'{"a": 0}', "[...] must be a number above 0.0, got {'a': 0}"),
        (tuple[bool | None, ...], b"[1]", "[0] must be true or false or empty, got 1"),
        (str, b"[" + b"1, " * 99 + b"1]", "it must be text, got [1, 1, 1, 1, 1, 1, ...]"),
    ],
)
def test_what_has_another_type_is_told_in_one_line(kind: Any, content: bytes, message: str) -> None:
    """The place, the rule, and what came, in short."""
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is compared as a whole
        decode(kind, content)
    assert str(error.value) == message


def test_text_that_utf8_can_not_hold_is_text() -> None:
    """Python writes half of a surrogate pair for a byte that is none, and messages of foreign programs hold some."""
    assert decode(list[str], b'["\\udcff.so"]') == ["\udcff.so"]


def test_a_value_has_a_name() -> None:
    """The name stands before the place, and a list becomes a tuple where that is the type."""
    assert convert([1, 2], tuple[int, ...]) == (1, 2)
    with pytest.raises(ValueError, match=r"^kernels\[1\] must be text, got 2$"):
        convert(["a", 2], tuple[str, ...], "kernels")
