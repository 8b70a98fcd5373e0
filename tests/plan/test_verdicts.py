"""Verdicts by their names on the command line."""

from bench.plan.verdicts import VERDICTS, hyphened, named
from tests.refusals import refusal


def test_every_verdict_has_one_word_of_the_command_line() -> None:
    """Commas separate them, spaces don't matter, and none is a list too; an unknown one is refused with all of them."""
    words = [hyphened(verdict) for verdict in VERDICTS]
    assert len({*words}) == len(VERDICTS)
    assert named(",".join(words)) == tuple(VERDICTS)
    assert (named(" missing , new ,"), named("")) == (("missing", "new"), ())
    for word in ("same", "newly failing", "Slower", "slower;missing"):
        line = refusal(named, f"missing,{word}")
        assert all(name in line for name in (repr(word), *words))
