"""The machines of a merged run: a run folder for each, and the file that lists them."""

import json
from collections.abc import Mapping
from pathlib import Path

from bench.plan.errors import WrongRequest
from bench.store import atomic
from bench.store.environment import Environment
from bench.store.saved_run import SavedRun

MACHINES = "machines.json"
"""The file in a merged run of several machines: the env_id of each, by the name of its folder."""


def save(run: Path, folders: Mapping[str, str]) -> None:
    """Write which folder holds which machine's results; raises OSError if it can't be written."""
    atomic.replace_json(run / MACHINES, dict(sorted(folders.items())))


def folders_of(run: Path) -> dict[str, str]:
    """Return the env_id of each machine's folder in a merged run, none if it is no run of several machines.

    Raises WrongRequest for a broken file.
    """
    path = run / MACHINES
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): str(env_id) for name, env_id in content.items()}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, AttributeError):
        raise WrongRequest(f"{path} is no list of machines") from None


def runs_of(saved: SavedRun) -> dict[str, SavedRun]:
    """Return the runs of the machines of a merged run by their names, a single run by its machine's."""
    folders = folders_of(saved.path)
    if folders:
        return {name: SavedRun(saved.path / name) for name in folders}
    return {name_of(saved.environment) if saved.environment else "": saved}


def name_of(environment: Environment) -> str:
    """Return the name that a user gave a machine, else its processor and its env_id."""
    return str(environment.context.get("machine_name") or f"{environment.identity.get('cpu', '')} {environment.env_id}")
