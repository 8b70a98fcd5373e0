"""The two sides of a duel: differences and refusals."""

import pytest

from bench.plan.case import AFTER, AS_IS, BEFORE
from bench.plan.sides import Side, sides_of
from tests.refusals import refusal

DEIT, VIT = "timm:deit_small_patch16_224", "timm:vit_small_patch16_224"


@pytest.mark.parametrize(
    ("given", "before", "after"),
    [
        ((["eager", "mine:attend"], [], [], []), Side("eager", "eager"), Side("mine:attend", "mine:attend")),
        (
            ([DEIT], [], ["../timm@main", "../timm"], []),
            Side(BEFORE, AS_IS, DEIT, "../timm@main"),
            Side(AFTER, AS_IS, DEIT, "../timm"),
        ),
        (
            (["my:attend"], [], [".@main", "."], []),
            Side(BEFORE, "my:attend", checkout=".@main"),
            Side(AFTER, "my:attend", checkout="."),
        ),
        (([DEIT, VIT], [], [], []), Side(BEFORE, AS_IS, DEIT), Side(AFTER, AS_IS, VIT)),
        (([DEIT], [], [], ["a", "a"]), Side(BEFORE, AS_IS, DEIT, python="a"), Side(AFTER, AS_IS, DEIT, python="a")),
        ((["eager", "sdpa"], ["my:A"], [], []), Side("eager", "eager", "my:A"), Side("sdpa", "sdpa", "my:A")),
        (
            (["eager", "sdpa"], [], ["a", "b"], []),
            Side(BEFORE, "eager", checkout="a"),
            Side(AFTER, "sdpa", checkout="b"),
        ),
    ],
    ids=lambda of: "" if isinstance(of, Side) else " ".join(word for words in of for word in words),
)
def test_sides_are_what_differs(given: tuple[list[str], ...], before: Side, after: Side) -> None:
    """What is given once is the same for both; rows have names of implementations if nothing else differs."""
    names, layers, checkouts, pythons = given
    assert sides_of(names, layers, checkouts, pythons) == (before, after)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (([], [], [], []), "expected an implementation, a model or --layer"),
        ((["eager", "eager"], [], [], []), "got eager eager"),
        (([], ["my:A"], [], []), "got --layer my:A; compare one with itself by --python "),
        ((["eager", "sdpa", "mha"], [], [], []), "at most twice, got eager, sdpa, mha"),
        ((["my:attend"], [], ["."], []), "give --checkout twice, before and then after, got ."),
        ((["sdpa"], [], [], ["a", "b", "c"]), "give --python twice, before and then after, got a, b, c"),
    ],
    ids=lambda of: "" if isinstance(of, str) else " ".join(word for words in of for word in words) or "nothing",
)
def test_a_request_without_two_sides_is_refused(given: tuple[list[str], ...], words: str) -> None:
    """The line has the rule, what came, and how often it may come."""
    said = refusal(sides_of, *given)
    assert "two sides" in said
    assert words in said
