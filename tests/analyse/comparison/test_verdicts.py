"""Verdicts by name."""

import pytest

from bench.analyse.comparison.verdicts import VERDICTS, hyphened, named
from tests.refusals import refusal


def test_every_verdict_has_one_word_and_is_found_by_it() -> None:
    """What the command line is given by is told apart, and nothing needs quotes."""
    words = [hyphened(verdict) for verdict in VERDICTS]
    assert len(set(words)) == len(VERDICTS)
    assert not any(" " in word for word in words)
    assert named(",".join(words)) == tuple(VERDICTS)


@pytest.mark.parametrize(
    ("words", "verdicts"),
    [
        ("slower", ("slower",)),
        ("slower,newly-failing", ("slower", "newly failing")),
        (" missing , new ,", ("missing", "new")),
        ("", ()),
    ],
)
def test_lists_of_verdicts_are_read(words: str, verdicts: tuple[str, ...]) -> None:
    """Commas part them, blanks around them don't matter, and none is a list too."""
    assert named(words) == verdicts


@pytest.mark.parametrize("word", ["same", "newly failing", "Slower", "slower;missing"])
def test_an_unknown_verdict_is_refused_with_those_that_there_are(word: str) -> None:
    """The refusal is one line with every name as it is to be written."""
    line = refusal(named, f"missing,{word}")
    assert all(name in line for name in (repr(word), *map(hyphened, VERDICTS)))
