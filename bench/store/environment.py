"""The environment of a run: identity, state and context, as environment.json."""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.plan.device import CPU, numbered
from bench.plan.errors import WrongRequest
from bench.store import files

ENVIRONMENT = "environment.json"

VARIABLES = "variables"
"""The fact with the environment variables that change what runs; it is absent without any."""


@dataclass(frozen=True)
class Environment:
    """The facts of a machine and its software.

    Runs can be compared if they have the same `identity`. A different `state` gives a note; `context` is not compared.
    `runtimes` has the versions of packages other than torch that the run's implementations need. Versions of packages
    that both runs have must agree.
    """

    identity: dict[str, Any]
    state: dict[str, Any]
    context: dict[str, Any]
    runtimes: dict[str, str] = field(default_factory=dict)

    @property
    def env_id(self) -> str:
        """A short hash of the identity, the same for the same machine and software."""
        canonical = json.dumps(self.identity, sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]

    def device_name(self, device: str) -> str:
        """Return the model name of a device of this machine; empty for a missing device."""
        names: dict[str, str] = {CPU.name: self.identity["cpu"], **self.identity["gpus"]}
        return names.get(numbered(device), "")


def save(environment: Environment, run: Path) -> None:
    """Write environment.json of a new run; an existing file stays, because the run's rows were measured there.

    Missing runtimes are added. Raises OSError if the file can't be written, WrongRequest if it is broken.
    """
    first = load(run) or environment
    runtimes = {**environment.runtimes, **first.runtimes}
    if not (run / ENVIRONMENT).exists() or runtimes != first.runtimes:
        files.replace_json(run / ENVIRONMENT, {"env_id": first.env_id, **vars(first), "runtimes": runtimes})


def load(run: Path) -> Environment | None:
    """Return the environment of a run, None if it has none; raises WrongRequest for a broken file."""
    path = run / ENVIRONMENT
    if not path.exists():
        return None
    from bench.store.typed import decode  # a worker in another environment imports this file and may lack msgspec

    try:
        return decode(Environment, path.read_bytes())
    except ValueError as error:
        raise WrongRequest(f"{path} is not an environment of attention-bench ({error})") from None


def differences(base: Environment, new: Environment) -> list[str]:
    """Return a line for each difference between two identities and between the runtimes that both have."""
    before, after = _facts(base.identity), _facts(new.identity)
    keys = [key for key in sorted({*before, *after}) if _canonical(before, key) != _canonical(after, key)]
    lines = [f"{key}: {_described(before, key)} against {_described(after, key)}" for key in keys]
    both = sorted(base.runtimes.keys() & new.runtimes.keys())
    pairs = ((key, base.runtimes[key], new.runtimes[key]) for key in both)
    return lines + [f"{key}: {old!r} against {young!r}" for key, old, young in pairs if old != young]


def _facts(identity: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of an identity, with each environment variable as a separate fact."""
    variables = {f"variable {name}": value for name, value in identity.get(VARIABLES, {}).items()}
    return {**{key: value for key, value in identity.items() if key != VARIABLES}, **variables}


def _described(facts: dict[str, Any], key: str) -> str:
    missing = "not set" if key.startswith("variable ") else "not recorded"
    return repr(facts[key]) if key in facts else missing


def _canonical(facts: dict[str, Any], key: str) -> str:
    """Return a fact as JSON; empty for a missing fact, so that it differs from None."""
    return json.dumps(facts[key], sort_keys=True) if key in facts else ""
