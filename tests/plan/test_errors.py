"""The refusals themselves."""

from bench.plan.errors import NotComparable, WrongRequest, unknown


def test_unknown_names_what_came_and_what_could_have_come() -> None:
    """The refusal of a name is one line with the rule, the name, and the names that are known."""
    refusal = unknown("colour", "rde", ["red", "green"])

    assert isinstance(refusal, WrongRequest)
    assert str(refusal) == "unknown colour 'rde'; expected one of red, green"


def test_what_can_not_be_compared_is_a_wrong_request() -> None:
    """Who handles wrong requests handles incomparable results too."""
    assert issubclass(NotComparable, WrongRequest)
