"""Which implementation holds for which layer, and why not, as a table that is Markdown too."""

from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

HOLDS = "yes"


def matrix(
    layers: Sequence[str],
    implementations: Sequence[str],
    cannot: Mapping[tuple[str, str], str],
    conditions: Mapping[str, str],
) -> RenderableType:
    """Return a row for each implementation, a column for each layer, and below them why some don't go together."""
    reasons = list(dict.fromkeys(cannot.values()))
    table = Table(box=box.MARKDOWN)
    table.add_column("implementation", no_wrap=True)
    for layer in layers:
        table.add_column(layer, no_wrap=True)
    table.add_column("holds")
    for name in implementations:
        cells = [_cell(cannot.get((layer, name)), reasons) for layer in layers]
        table.add_row(Text(name), *cells, conditions.get(name, "everywhere"))
    notes = [Text(f"({number}) {reason}.") for number, reason in enumerate(reasons, 1)]
    return Group(table, Text(""), *notes)


def _cell(reason: str | None, reasons: Sequence[str]) -> str:
    return HOLDS if reason is None else f"no ({reasons.index(reason) + 1})"
