"""What is written in a figure, and whether it can be read."""

import itertools
from typing import TypeVar

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.text import Text

T = TypeVar("T", bound=Artist)


def drawn(figure: Figure, kind: str, of: type[T]) -> dict[str, T]:
    """Return the artists of a kind by what they show; a name is the kind and what is shown."""
    artists = {str(artist.get_gid()): artist for artist in figure.findobj(of) if isinstance(artist, of)}
    return {gid.removeprefix(f"{kind} "): artist for gid, artist in artists.items() if gid.startswith(f"{kind} ")}


def texts(figure: Figure) -> list[Text]:
    """Return all visible text of a figure."""
    figure.draw_without_rendering()  # places what depends on the rest
    return [text for text in figure.findobj(Text) if isinstance(text, Text) and text.get_text() and text.get_visible()]


def assert_legible(figure: Figure) -> None:
    """See that no two texts overlap; a file is as large as what is drawn, so none is cut off."""
    boxes = [text.get_window_extent() for text in texts(figure)]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
