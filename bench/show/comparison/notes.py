"""Notes about the two runs of a comparison, and what has to be true for each."""

from collections.abc import Iterator, Sequence

import pandas as pd

from bench.analyse.change import Change
from bench.analyse.comparable import is_steady, raw_change, state_differences
from bench.show.text import counted
from bench.store.saved_run import SavedRun


def about(base: SavedRun, new: SavedRun, changes: Sequence[Change]) -> Iterator[str]:
    """Yield settings that differ, origins, and the machine's state and speed."""
    sides = [run.effort for run in (base, new)]
    if None not in sides and sides[0] != sides[1]:
        old, young = (vars(side) for side in sides)
        asked = [f"{name} {old[name]} against {young[name]}" for name in old if old[name] != young[name]]
        yield f"BASE and NEW were asked for differently: {'; '.join(asked)}"
    yield f"BASE is {_origin(base.table)}; NEW is {_origin(new.table)}"
    if base.environment and new.environment and (found := state_differences(base.environment, new.environment)):
        states = [f"{name} {before} against {after}" for name, (before, after) in found.items()]
        yield f"warning: the machine was in another state: {'; '.join(states)}: a duel measures both sides in turn"
    if factor := raw_change(changes):
        warning = "" if is_steady(factor) else "warning: "
        yield f"{warning}the median row takes {factor:.2f} times as long in NEW as in BASE; changes leave that out"


def _origin(table: pd.DataFrame) -> str:
    """Return which commits were measured, and in how many processes."""
    commits = ", ".join(table["commit"].dropna().unique()) or "unknown"
    processes = counted(table.loc[table["status"] == "ok", "processes"].dropna().tolist(), "process", "processes")
    return f"commit {commits}" + (f" in {processes}" if processes else "")
