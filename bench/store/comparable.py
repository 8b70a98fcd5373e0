"""Whether two results were measured under the same conditions."""

from pathlib import Path

from bench.plan.case import CASE_COLUMNS
from bench.store.environment import Environment, differences
from bench.store.environment import load as load_environment
from bench.store.table import load as load_table


def unlike_conditions(base: str | Path, new: str | Path) -> list[str]:
    """Return how the machines or the software differ that two run folders or results files come from.

    An environment.json beside the results says what differs; without one the rows' env_id must do.
    Raises WrongRequest for a path that holds no results.
    """
    before, after = environment_of(base), environment_of(new)
    return (differences(before, after) if before and after else []) or _env_ids(base, new)


def environment_of(path: str | Path) -> Environment | None:
    """Return the environment of a run folder or of the run that a results file stands in, None where there is none."""
    folder = Path(path)
    return load_environment(folder if folder.is_dir() else folder.parent)


def _env_ids(base: str | Path, new: str | Path) -> list[str]:
    """Return how the env_ids of shared cases differ; a run that moved between machines has several."""
    both = load_table(base).merge(load_table(new), on=list(CASE_COLUMNS), suffixes=("_base", "_new"))
    pairs = both[["env_id_base", "env_id_new"]].drop_duplicates().fillna("unknown").to_numpy().tolist()
    return [f"env_id {old} against {young}" for old, young in pairs if old != young]
