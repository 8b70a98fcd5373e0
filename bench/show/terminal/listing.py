"""Names and what they stand for."""

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text


def listing(title: str, entries: Mapping[str, str]) -> RenderableType:
    """Return a titled list of names, each with what it stands for."""
    grid = Table.grid(padding=(0, 2), pad_edge=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, meaning in entries.items():
        grid.add_row(Text(name), Text(meaning))
    return Group(Text(title, "bold"), grid)
