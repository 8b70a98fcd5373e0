"""Pictures of one metric along one axis, a line for each implementation."""

from collections.abc import Iterator

import pandas as pd
from matplotlib.figure import Figure

from bench.show.figures.end_labels import draw_failures, draw_labels
from bench.show.figures.line_axes import empty_panels
from bench.show.figures.line_data import Picture, pictures
from bench.show.figures.line_styles import draw_lines
from bench.show.figures.page import Drawing, styled


def figures(table: pd.DataFrame) -> Iterator[Drawing]:
    """Yield every picture that a table of results has values for."""
    return ((picture.name, figure(picture)) for picture in pictures(table))


def figure(picture: Picture) -> Figure:
    """Return the picture as a figure."""
    with styled():
        panels = empty_panels(picture)
        draw_lines(panels, picture)
        draw_labels(panels, picture)
        draw_failures(panels, picture)
    return panels.figure
