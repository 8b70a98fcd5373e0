"""Type in pictures: sizes in points, and how much room words take, in inches."""

from collections.abc import Sequence

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

FONT = "DejaVu Sans"
"""Comes with matplotlib, so a picture looks the same everywhere."""

TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 12.0, 9.0, 7.5

POINTS = 72
"""An inch has so many."""


def text_width(text: str, size: float = TEXT_SIZE, *, bold: bool = False) -> float:
    """Return how long a text is when it is drawn."""
    font = FontProperties(family=FONT, size=size, weight="bold" if bold else "normal")
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width) / POINTS


def wrapped(words: Sequence[str], width: float, size: float = TEXT_SIZE, *, bold: bool = False) -> list[str]:
    """Return the words in lines no longer than this, a dot between two; a word is never broken."""
    lines: list[str] = []
    for word in words:
        longer = f"{lines[-1]} · {word}" if lines else word
        if lines and text_width(longer, size, bold=bold) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
