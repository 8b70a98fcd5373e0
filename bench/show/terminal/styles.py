"""What the terminal's colours mean; every meaning is also said in words."""

from bench.show.rows import UNTRIED

GOOD = "bold green"
BAD = "red"
WARNING = "yellow"
QUIET = "dim"


def of_status(status: str) -> str:
    """Return the style of a status that isn't ok: loud only where something went wrong."""
    return QUIET if status in UNTRIED else BAD
