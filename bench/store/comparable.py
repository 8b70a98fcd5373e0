"""Whether two results were measured under the same conditions."""

from pathlib import Path

from bench.plan.case import CASE_COLUMNS
from bench.plan.errors import NotComparable
from bench.store.environment import Environment, differences
from bench.store.environment import load as load_environment
from bench.store.table import load as load_table


def check_comparable(base: str | Path, new: str | Path) -> None:
    """Raise NotComparable where two run folders or results files come from different machines or software.

    An environment.json beside the results says what differs; without one the rows' env_id must do.
    Raises WrongRequest for a path that holds no results.
    """
    reason = _identities(_environment(base), _environment(new)) or _env_ids(base, new)
    if reason:
        raise NotComparable(f"BASE and NEW were not measured under the same conditions: {reason}")


def _identities(base: Environment | None, new: Environment | None) -> str:
    return "; ".join(differences(base, new)) if base and new else ""


def _env_ids(base: str | Path, new: str | Path) -> str:
    """Return how the env_ids of shared cases differ; a run that moved between machines has several."""
    both = load_table(base).merge(load_table(new), on=list(CASE_COLUMNS), suffixes=("_base", "_new"))
    pairs = both[["env_id_base", "env_id_new"]].drop_duplicates().fillna("unknown").to_numpy().tolist()
    return "; ".join(f"env_id {old} against {young}" for old, young in pairs if old != young)


def _environment(path: str | Path) -> Environment | None:
    folder = Path(path)
    return load_environment(folder if folder.is_dir() else folder.parent)
