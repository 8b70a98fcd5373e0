"""Lists: names with their meanings, and which implementation supports which layer."""

from collections.abc import Mapping

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bench.plan.layers.layer import Layer
from impls.catalogue import Entry


def listing(title: str, entries: Mapping[str, str]) -> RenderableType:
    """Return a titled list of names with their meanings."""
    grid = Table.grid(padding=(0, 2), pad_edge=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, meaning in entries.items():
        grid.add_row(Text(name), Text(meaning))
    return Group(Text(title, "bold"), grid)


SUPPORTED = "yes"


def matrix(layers: Mapping[str, Layer], implementations: Mapping[str, Entry]) -> RenderableType:
    """Return a row for each implementation, a column for each layer, and below them why some pairs are unsupported.

    The table is Markdown too.
    """
    reasons = list(dict.fromkeys(reason for entry in implementations.values() for reason in entry.refuses.values()))
    table = Table(box=box.MARKDOWN)
    table.add_column("implementation", no_wrap=True)
    for layer in layers:
        table.add_column(layer, no_wrap=True)
    table.add_column("supported")
    for name, entry in implementations.items():
        cells = [_cell(entry.refuses.get(layer.class_name), reasons) for layer in layers.values()]
        table.add_row(Text(name), *cells, entry.supports)
    notes = [Text(f"({number}) {reason}.") for number, reason in enumerate(reasons, 1)]
    return Group(table, Text(""), *notes)


def _cell(reason: str | None, reasons: list[str]) -> str:
    return SUPPORTED if reason is None else f"no ({reasons.index(reason) + 1})"
