"""Ranges of whole numbers."""

import pytest

from bench.plan.ranges import is_range, numbers
from tests.refusals import refusal


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("128:512:128", [128, 256, 384, 512]),
        ("100:250:100", [100, 200]),
        ("128:2048:x2", [128, 256, 512, 1024, 2048]),
        ("100:1000:x3", [100, 300, 900]),
        ("1:4", [1, 2, 3, 4]),
        ("7:7", [7]),
        (" 7:8 ", [7, 8]),
    ],
)
def test_a_range_holds_its_last_number_if_the_steps_meet_it(text: str, expected: list[int]) -> None:
    """A range adds its step, or multiplies by its factor, up to and including the last number."""
    assert numbers(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("128:", "must be first:last"),
        (":5", "must be first:last"),
        ("1:2:3:4", "must be first:last"),
        ("a:b", "must be first:last"),
        ("1:8:y2", "must be first:last"),
        ("-1:8", "must be first:last"),
        ("1:8:2.5", "must be first:last"),
        ("1:8:0", "a step of at least 1"),
        ("1:8:x1", "a factor of at least 2"),
        ("0:8", "must start at 1"),
        ("9:3", "is empty: the last number, 3, is below the first, 9"),
        ("1:1000000000", "holds 1,000,000,000 numbers"),
    ],
)
def test_what_is_no_range_is_refused(text: str, reason: str) -> None:
    """The refusal is one line that begins with what came."""
    line = refusal(numbers, text)
    assert line.startswith(text)
    assert reason in line
    assert "\n" not in line


def test_a_text_with_a_colon_is_meant_as_a_range() -> None:
    """A number, and a text without a colon, are none."""
    assert is_range("1:2")
    assert not any(is_range(value) for value in (8, "8", None, [1, 2]))
