"""A profile: what one case did in one call, operator by operator, as it lies beside its trace."""

import dataclasses
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from bench.plan.case import CASE_COLUMNS, Case
from bench.plan.errors import WrongRequest
from bench.store import atomic
from bench.store.record import Origin

SCHEMA_VERSION = 1

TRACES = "traces"
"""The folder of a run that holds the traces and profiles of its cases."""

SUFFIX = ".profile.json"

FORWARD, BACKWARD = "forward", "backward"
"""The directions of a stage."""

STAGE, OPERATOR, KERNEL = "stage", "operator", "kernel"
"""The kinds of a span."""


@dataclass(frozen=True)
class Operator:
    """What one operator, or one kernel that Inductor made, did in a call: means over the profiled calls.

    `self_s` is the host's time without that of the operators it called, `device_s` the time of the kernels it
    launched on a GPU, None on a CPU. `allocated_bytes` is what it allocated itself, whatever it freed.
    `flops` is None if torch doesn't know them. `kernels` are the GPU kernels that it launched.
    """

    name: str
    calls: float
    self_s: float
    allocated_bytes: float
    device_s: float | None = None
    flops: float | None = None
    kernels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stage:
    """What one step of the layer cost in a call: means over the profiled calls.

    `time_s` is the time inside it, the GPU's if the case ran on one, else the host's.
    `moved_bytes` are the bytes of its inputs and outputs, each moved once, None without a formula;
    `allocated_bytes` is what was allocated inside it.
    """

    name: str
    direction: str
    time_s: float
    allocated_bytes: float
    moved_bytes: int | None = None
    flops: float | None = None


@dataclass(frozen=True)
class Span:
    """Something that took time in the one call that is kept whole; `start_s` counts from the call's beginning.

    `lane` names the thread or stream it ran on, `depth` how many spans of the lane it lies in.
    """

    name: str
    kind: str
    lane: str
    depth: int
    start_s: float
    duration_s: float


@dataclass(frozen=True)
class Block:
    """A block of memory that was allocated in the one call that is kept whole.

    `operator` and `stage` allocated it, empty if none did. `end_s` is None if the block outlived the call.
    """

    bytes: int
    operator: str
    stage: str
    start_s: float
    end_s: float | None


@dataclass(frozen=True)
class Profile:
    """A case under torch.profiler, and its latency without: `profiled_s` and `timed_s` are means of calls in turns.

    `spans` and `blocks` are of one call, the median; `operators`, `stages` and `profiled_s` are means over `calls`,
    the middle half of all that were profiled, as `timed_s` is of those that were not.
    A case whose implementation names no stages has none.
    """

    case: Case
    origin: Origin
    calls: int
    timed_s: float
    profiled_s: float
    operators: tuple[Operator, ...]
    stages: tuple[Stage, ...] = ()
    spans: tuple[Span, ...] = ()
    blocks: tuple[Block, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the profile as one JSON object."""
        values = dataclasses.asdict(self)
        del values["case"], values["origin"]
        return {
            "schema_version": SCHEMA_VERSION,
            **self.case.columns(),
            **dataclasses.asdict(self.origin),
            **values,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """Return the profile of a JSON object; raises WrongRequest for a newer schema, KeyError for a foreign one."""
        version = values["schema_version"]
        if version > SCHEMA_VERSION:
            raise WrongRequest(
                f"profiles have schema_version {version}; this suite reads up to {SCHEMA_VERSION}, so update the suite"
            )
        operators = [{**each, "kernels": tuple(each["kernels"])} for each in values["operators"]]
        return cls(
            case=Case.from_columns({name: values[name] for name in CASE_COLUMNS if name in values}),
            origin=Origin(**{f.name: values[f.name] for f in dataclasses.fields(Origin)}),
            calls=values["calls"],
            timed_s=values["timed_s"],
            profiled_s=values["profiled_s"],
            operators=tuple(Operator(**each) for each in operators),
            stages=tuple(Stage(**each) for each in values["stages"]),
            spans=tuple(Span(**each) for each in values["spans"]),
            blocks=tuple(Block(**each) for each in values["blocks"]),
        )


def file_name(case: Case) -> str:
    """Return what the files of a case are named after: its name, safe in every file system."""
    return case.name.replace(":", ".")


def save(profile: Profile, run: Path) -> Path:
    """Write a profile beside its trace, and return its file."""
    path = run / TRACES / f"{file_name(profile.case)}{SUFFIX}"
    atomic.replace(path, json.dumps(profile.to_json(), allow_nan=False))
    return path


def load(run: Path) -> list[Profile]:
    """Return the profiles of a run by the names of their files, in which numbers stand by their size.

    Raises WrongRequest if a file is no profile.
    """
    return list(_profiles(run / TRACES))


def _profiles(folder: Path) -> Iterator[Profile]:
    for path in sorted(folder.glob(f"*{SUFFIX}"), key=_place):
        try:
            yield Profile.from_json(json.loads(path.read_text(encoding="utf-8")))
        except WrongRequest as error:
            raise WrongRequest(f"{path}: {error}") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise WrongRequest(f"{path} is no profile of attention-bench ({error!r})") from None


def _place(path: Path) -> list[str | int]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.name)]
