"""The refusals themselves."""

import pytest

from bench.plan.errors import nearest, unknown, unknown_names


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

    Names with other numbers don't match, and a value that isn't text is near nothing.
    """
    assert nearest(name, ["eager", "sdpa", "sdpa_flash", "float32", "num_heads", "threads"]) == near
