"""What is said of rows whose core got into the graph of a module: tracing alone changes the time too."""

from collections.abc import Sequence

import pandas as pd

from bench.analyse.rows import speedup_of
from bench.plan.case import AS_IS
from bench.plan.invocation import short
from bench.show import intervals
from bench.show.rows import Row, measured, plain
from bench.show.text import listed
from bench.stats.estimates import Interval
from bench.store import units
from bench.store.table import without_control
from impls.catalogue import GRAPH


def words(whole: pd.DataFrame, baseline: str | None) -> list[str]:
    """Return sentences: which rows run a graph, what tracing alone does, what helps; none if the baseline is one."""
    rows = measured(plain(without_control(whole)))
    by_graph = [row for row in rows if _is_by_graph(row)]
    names = [*dict.fromkeys(str(row["implementation"]) for row in by_graph if row["implementation"] != GRAPH)]
    if not by_graph or baseline == GRAPH:
        return []
    ratios = _ratios(by_graph) if baseline == AS_IS else []
    alone = f": tracing alone made it {_range(ratios)} as fast as {baseline}" if ratios else ""
    if not names:
        return [f"{GRAPH} is a control{alone}."]
    run = f"{listed(names)} {'run' if len(names) > 1 else 'runs'} the graph of the module's call"
    advice = f"{short()} advise says what to write in its source."
    if any(row["implementation"] == GRAPH for row in by_graph):
        return [f"{run}; compare with the row {GRAPH}{alone}.", advice]
    was_asked = GRAPH in {*whole["implementation"]}  # and refused, or it failed
    shows = "" if was_asked else f"; --impl {','.join([GRAPH, *names])} shows by how much"
    return [f"{run}: tracing alone changes the time too{shows}.", advice]


def _is_by_graph(row: Row) -> bool:
    return str(row["adapted_by"] or "").startswith(GRAPH)


def _ratios(rows: Sequence[Row]) -> list[Interval]:
    """Return the speed-ups of the module that is traced and unchanged."""
    own = [row for row in rows if row["implementation"] == GRAPH and row["speedup"] is not None]
    return sorted(map(speedup_of, own), key=lambda ratio: ratio.value)


def _range(ratios: Sequence[Interval]) -> str:
    """Return a ratio with its interval, or the least and the largest of several."""
    low, high = units.ratio(ratios[0].value), units.ratio(ratios[-1].value)
    return intervals.ratio(ratios[0]) if len(ratios) == 1 else low if low == high else f"{low} to {high}"
