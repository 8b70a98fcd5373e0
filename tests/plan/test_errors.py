"""The refusals themselves."""

import pytest

from bench.plan.errors import WrongRequest, all_of, nearest, unknown, unknown_names
from tests.refusals import refusal


def test_unknown_names_are_one_line_with_the_nearest_of_each() -> None:
    """With the names that are known, or where they stand; a name that is like none gets no suggestion."""
    assert str(unknown("colour", "black", ["red", "green"])) == "unknown colour 'black'; expected one of red, green"
    line = unknown_names("colour", ["rde", "x", "gren"], ["red", "green"], "those of the rainbow")
    assert line == (
        "unknown colours 'rde', 'x', 'gren'; expected one of those of the rainbow; "
        "did you mean red for 'rde', green for 'gren'?"
    )


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("sdap", "sdpa"),
        ("fp32", "float32"),
        ("Eager", "eager"),
        ("heads", "num_heads"),
        ("flash", "sdpa_flash"),
        ("float64", ""),
        ("sdpa3", ""),
        ("qqqqqq", ""),
        (3, ""),
        (["eager"], ""),
    ],
)
def test_the_nearest_name(name: object, near: str) -> None:
    """A slip of the finger, another case and a part of a name are near it.

    Another number is another thing, and what is no text is near nothing.
    """
    assert nearest(name, ["eager", "sdpa", "sdpa_flash", "float32", "num_heads", "threads"]) == near


def test_the_mistakes_of_several_makers_are_one_message() -> None:
    """Two makers that refuse are one refusal of two lines; without a refusal each one's work is returned."""

    def refuse(text: str) -> None:
        raise WrongRequest(text)

    assert refusal(all_of, lambda: refuse("one"), lambda: 3, lambda: refuse("two")) == "one\ntwo"
    assert all_of(lambda: 1, lambda: "b") == [1, "b"]
