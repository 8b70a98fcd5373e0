"""Lists: names with their meanings, and which implementation supports which layer."""

from collections.abc import Mapping

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bench.plan.layers.layer import Layer
from bench.show.terminal.console import definitions
from impls.catalogue import Entry


def listing(title: str, entries: Mapping[str, str]) -> RenderableType:
    """Return a titled list of names with their meanings."""
    return Group(Text(title, "bold"), definitions(entries, indented=True))


def matrix(layers: Mapping[str, Layer], implementations: Mapping[str, Entry]) -> RenderableType:
    """Return a row for each implementation, a column for each layer, and below them why some pairs are unsupported.

    The table is Markdown too.
    """
    refusals = {
        name: [entry.refusal(layer.class_name) for layer in layers.values()] for name, entry in implementations.items()
    }
    reasons = list(dict.fromkeys(reason for row in refusals.values() for reason in row if reason))
    table = Table(box=box.MARKDOWN)
    table.add_column("implementation", no_wrap=True)
    for layer in layers:
        table.add_column(layer, no_wrap=True)
    table.add_column("supported")
    for name, entry in implementations.items():
        cells = [f"no ({reasons.index(reason) + 1})" if reason else "yes" for reason in refusals[name]]
        table.add_row(Text(name), *cells, entry.supports)
    notes = [Text(f"({number}) {reason}.") for number, reason in enumerate(reasons, 1)]
    return Group(table, Text(""), *notes)
