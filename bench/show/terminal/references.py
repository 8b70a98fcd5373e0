"""Published figures beside ours."""

from collections.abc import Iterable
from typing import Any

import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bench.plan.errors import WrongRequest
from bench.plan.published import PARTS, Published
from bench.show.point_text import parts
from bench.show.rows import by_point
from bench.show.terminal.console import QUIET
from bench.store import units

LEGEND = (
    "theirs / ours: above 1 we are faster; two machines and often two pieces of work, so an order of magnitude and no "
    "verdict",
    "core alone: attention with q, k and v given; ours is always the whole layer, with its projections",
)


def references(table: pd.DataFrame, published: Iterable[Published]) -> RenderableType:
    """Return a row for each published figure that is for a case of the table, with our time beside it.

    Raises WrongRequest if there is none.
    """
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("point", "implementation", "ours", "theirs", "theirs / ours", "called", "what", "on", "source"):
        grid.add_column(heading, justify="right" if heading in ("ours", "theirs", "theirs / ours") else "left")
    figures = list(published)
    for point, rows in by_point(table).items():
        by_name = {row["implementation"]: row for row in rows}
        for figure in figures:
            row = by_name.get(figure.implementation)
            if row is not None and figure.is_for(point):
                text = " ".join(parts(point, ["dtype", "mode", "batch", "num_tokens", "channels", "num_heads"]))
                times = _compared(row, figure, figure.latency_s(point))
                origin = map(Text, (figure.called, PARTS[figure.part], figure.machine, figure.source))
                grid.add_row(text, figure.implementation, *times, *origin)
    if not grid.row_count:
        sources = ", ".join(dict.fromkeys(figure.source for figure in figures))
        raise WrongRequest(f"no published figure is for a case of this run; there are figures of {sources}")
    return Group(grid, *(Text(line, QUIET) for line in LEGEND))


def _compared(row: dict[str, Any], figure: Published, theirs_s: float) -> tuple[str, str, str]:
    """Return our time or status, their time, and the ratio of theirs to ours."""
    rate = f"{figure.value:g} items/s" if figure.unit == "items_per_s" else ""
    theirs = " = ".join(word for word in (rate, units.seconds(theirs_s)) if word)
    if row["status"] != "ok":
        return str(row["status"]), theirs, ""
    return units.seconds(row["latency_s"]), theirs, units.ratio(theirs_s / row["latency_s"])
