"""Pictures of one metric along one axis, a line for each implementation."""

from collections.abc import Iterator

import pandas as pd
from matplotlib.figure import Figure

from bench.show.edges import draw_failures, draw_labels
from bench.show.frame import sheet
from bench.show.page import Drawing, styled
from bench.show.pictures import Picture, pictures
from bench.show.strokes import draw_lines


def figures(table: pd.DataFrame) -> Iterator[Drawing]:
    """Yield every picture that a table of results has values for."""
    return ((picture.name, figure(picture)) for picture in pictures(table))


def figure(picture: Picture) -> Figure:
    """Return the picture as a figure."""
    with styled():
        made = sheet(picture)
        draw_lines(made, picture)
        draw_labels(made, picture)
        draw_failures(made, picture)
    return made.figure
