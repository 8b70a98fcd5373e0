"""Styles of text in the terminal; every meaning is also said in words."""

from bench.analyse.fastest import ALONE, NOTHING, Outcome
from bench.analyse.ranking import TIE, WINNER
from bench.show.rows import UNTRIED

GOOD = "bold green"
BAD = "red"
WARNING = "yellow"
QUIET = "dim"


def style_of_status(status: str) -> str:
    """Return the style of a status that isn't ok: loud only if something went wrong."""
    return QUIET if status in UNTRIED else BAD


def style_of_outcome(outcome: Outcome) -> str:
    """Return the style of an outcome: loud only if somebody is shown to be fastest, or nobody was measured."""
    if outcome.says == NOTHING:
        return BAD
    return GOOD if outcome.says in (WINNER, TIE, ALONE) else "bold"
