"""Pictures of a table of results, as PNG and SVG files."""

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from bench.show import roofline
from bench.show.edges import draw_failures, draw_labels
from bench.show.frame import sheet
from bench.show.page import save, styled
from bench.show.pictures import Picture, pictures
from bench.show.strokes import draw_lines


def draw(table: pd.DataFrame, folder: Path) -> list[Path]:
    """Write every picture that the table has values for, and return the files, a PNG and an SVG for each.

    The folder is made when there is something to write. The same table gives the same SVG, byte for byte.
    """
    files = [path for picture in pictures(table) for path in save(figure(picture), picture.name, folder)]
    return [*files, *roofline.draw(table, folder)]


def figure(picture: Picture) -> Figure:
    """Return the picture as a figure."""
    with styled():
        made = sheet(picture)
        draw_lines(made, picture)
        draw_labels(made, picture)
        draw_failures(made, picture)
    return made.figure
