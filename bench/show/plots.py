"""Pictures of one metric along one axis, a line for each implementation."""

from collections.abc import Iterator

import pandas as pd
from matplotlib import style as mpl_style
from matplotlib.figure import Figure

from bench.show.edges import draw_failures, draw_labels
from bench.show.frame import sheet
from bench.show.page import RC, Drawing
from bench.show.pictures import Picture, pictures
from bench.show.strokes import draw_lines


def figures(table: pd.DataFrame) -> Iterator[Drawing]:
    """Yield every picture that a table of results has values for."""
    return ((picture.name, figure(picture)) for picture in pictures(table))


def figure(picture: Picture) -> Figure:
    """Return the picture as a figure."""
    # what stands in the user's matplotlibrc is for the user's own pictures
    with mpl_style.context(RC, after_reset=True):
        made = sheet(picture)
        draw_lines(made, picture)
        draw_labels(made, picture)
        draw_failures(made, picture)
    return made.figure
