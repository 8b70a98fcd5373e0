"""The table of a change of precision: what it brings and what it costs in error."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bench.analyse.conclusions import WIDEST, Change
from bench.plan.case import Case
from bench.plan.errors import WrongRequest
from bench.show import intervals
from bench.show.point_text import parts
from bench.show.rows import Row, plain
from bench.show.terminal.console import QUIET
from bench.stats.estimates import Interval
from bench.store import units

LEGEND = (
    f"as fast: the time in {WIDEST} over the time in the other precision, paired round by round in the same "
    "replicates, with its 95 % interval; above 1 the other is faster",
    "error: the deviation from float64 that came nearest to its tolerance, relative to the largest value",
)


def precisions(table: pd.DataFrame, changes: Sequence[Change]) -> RenderableType:
    """Return a row for each implementation and change of precision, the shapes one below the other.

    Raises WrongRequest if nothing was measured in several precisions.
    """
    if not changes:
        raise WrongRequest(
            f"no case was measured in {WIDEST} and in another dtype in the same rounds; "
            "a sweep that has both measures them so, for example --dtype float32,bfloat16"
        )
    rows = {Case.from_columns(row): row for row in plain(table)}
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("point", "implementation", WIDEST, "error", "in", "", "error", "as fast"):
        is_text = heading in ("point", "implementation", "in")
        grid.add_column(heading, justify="left" if is_text else "right")
    for change in changes:
        speedup = change.speedup
        wide = rows[Case(change.point, change.implementation)]
        narrow = rows[Case(replace(change.point, dtype=change.dtype), change.implementation)]
        grid.add_row(
            " ".join(parts(change.point, ["mode", "batch", "num_tokens", "channels", "num_heads"])),
            change.implementation,
            *_time_and_error(wide),
            change.dtype,
            *_time_and_error(narrow),
            intervals.ratio(Interval(speedup.value, speedup.low, speedup.high)),
        )
    return Group(grid, *(Text(line, QUIET) for line in LEGEND))


def _time_and_error(row: Row) -> tuple[str, str]:
    return units.seconds(row["latency_s"]), "" if row["error"] is None else f"{row['error']:.1e}"
