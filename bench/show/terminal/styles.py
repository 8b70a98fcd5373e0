"""Styles of text in the terminal; every meaning is also said in words."""

from bench.analyse.standing import FASTEST, NOTHING, Choice
from bench.show.rows import UNTRIED
from bench.stats.best import GOOD as AS_GOOD

GOOD = "bold green"
BAD = "red"
WARNING = "yellow"
QUIET = "dim"


def style_of_status(status: str) -> str:
    """Return the style of a status that isn't ok: loud only if something went wrong."""
    return QUIET if status in UNTRIED else BAD


def style_of_choice(choice: Choice) -> str:
    """Return the style of a choice: loud if it costs next to nothing, or if nothing was measured."""
    if choice.standing == NOTHING:
        return BAD
    return GOOD if choice.standing == FASTEST or choice.high <= AS_GOOD else "bold"
