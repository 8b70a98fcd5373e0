"""Sizes of text in pictures: fonts in points, widths in inches."""

from collections.abc import Sequence

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

FONT = "DejaVu Sans"
"""It comes with matplotlib, so a picture looks the same everywhere."""

TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 12.0, 9.0, 7.5

POINTS = 72
"""Points in an inch."""


def text_width(text: str, size: float = TEXT_SIZE, *, bold: bool = False) -> float:
    """Return the width of a drawn text in inches."""
    font = FontProperties(family=FONT, size=size, weight="bold" if bold else "normal")
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width) / POINTS


def wrapped(words: Sequence[str], width: float, size: float = TEXT_SIZE, *, bold: bool = False) -> list[str]:
    """Return the words in lines of at most `width` inches, with a dot between words; a word is never broken."""
    lines: list[str] = []
    for word in words:
        longer = f"{lines[-1]} · {word}" if lines else word
        if lines and text_width(longer, size, bold=bold) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
