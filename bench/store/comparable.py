"""Whether two results were measured under the same conditions."""

from bench.plan.case import CASE_COLUMNS
from bench.store.environment import differences
from bench.store.saved_run import SavedRun


def unlike_conditions(base: SavedRun, new: SavedRun) -> list[str]:
    """Return how the machines or the software differ that two runs were measured with.

    Their environments say what differs; if one isn't known, the rows' env_id must do.
    Raises WrongRequest for a path that holds no results.
    """
    before, after = base.environment, new.environment
    return (differences(before, after) if before and after else []) or _env_ids(base, new)


def _env_ids(base: SavedRun, new: SavedRun) -> list[str]:
    """Return how the env_ids of shared cases differ; a run that moved between machines has several."""
    both = base.table.merge(new.table, on=list(CASE_COLUMNS), suffixes=("_base", "_new"))
    pairs = both[["env_id_base", "env_id_new"]].drop_duplicates().fillna("unknown").to_numpy().tolist()
    return [f"env_id {old} against {young}" for old, young in pairs if old != young]
