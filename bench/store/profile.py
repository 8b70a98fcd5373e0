"""A profile: the operators, stages and kernels in a call of one case, in a file beside its trace."""

import dataclasses
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from bench.plan.case import Case, Point
from bench.plan.errors import WrongRequest
from bench.store import files
from bench.store.record import SCHEMA_VERSION, Origin, Samples, check_schema
from bench.store.typed import convert, plain

TRACES = "traces"
"""The folder of a run that holds the traces and profiles of its cases."""

SUFFIX = ".profile.json"

FORWARD, BACKWARD = "forward", "backward"
"""The directions of a stage."""

CORE = "attention core"
"""The prefix of names of a graph's attention stages."""

STREAM = "stream "
"""The prefix of names of a GPU's lanes."""


@dataclass(frozen=True)
class ProfiledOperator:
    """The work of one operator, or of one kernel that Inductor made, in a call: means over the profiled calls.

    `self_s` is its host time with its launches but without the operators it called; `device_s` is the time of the GPU
    kernels that it launched, None on a CPU. `flops` counts its own product, convolution or attention, None if it has
    none. `kernels` are the GPU kernels that it launched. `line` is the line of source that called it, if a graph
    knows it.
    """

    name: str
    calls: float
    self_s: float
    device_s: float | None = None
    flops: float | None = None
    kernels: tuple[str, ...] = ()
    line: str = ""

    @property
    def time_s(self) -> float:
        """Its time: GPU time if the case ran on one, else host time without the operators it called."""
        return self.self_s if self.device_s is None else self.device_s


@dataclass(frozen=True)
class Stage:
    """The time of one step of the layer in a call, the GPU's if the case ran on one: a mean over profiled calls."""

    name: str
    direction: str
    time_s: float


@dataclass(frozen=True)
class Kernel:
    """A kernel or copy that a GPU ran in the last call; `start_s` counts from the call's beginning.

    `lane` names the stream that it ran on.
    """

    name: str
    lane: str
    start_s: float
    duration_s: float


@dataclass(frozen=True)
class Profile:
    """A case under torch.profiler: `profiled_s` is the time of a call with the profiler, `timed_s` without it, before.

    Both are means, and so are `operators` and `stages` of a call. `calls` is the number of profiled calls; `kernels`
    are those of the last call, none on a CPU.
    `samples` has the calls without the profiler, one in each; older profiles have none.
    """

    case: Case
    origin: Origin
    calls: int
    timed_s: float
    profiled_s: float
    operators: tuple[ProfiledOperator, ...]
    stages: tuple[Stage, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    samples: Samples = field(default_factory=Samples)

    def to_json(self) -> dict[str, Any]:
        """Return the profile as one JSON object."""
        values = dataclasses.asdict(self)
        del values["case"]
        return {"schema_version": SCHEMA_VERSION, **self.case.columns(), **values.pop("origin"), **values}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """Return the profile in a JSON object; raises ValueError for anything else."""
        place = {"point": values, "implementation": values.get("implementation")}
        profile = convert({**values, "case": place, "origin": values}, cls)
        point = Point(**vars(profile.case.point))  # msgspec sets only the file's columns
        case = Case(point, profile.case.implementation)
        return dataclasses.replace(profile, case=case)  # type: ignore[no-any-return]


def file_name(case: Case) -> str:
    """Return the name of a case's files: the case's name, safe in every file system."""
    return case.name.replace(":", ".")


def save(profile: Profile, run: Path) -> Path:
    """Write a profile beside its trace, and return its file."""
    path = run / TRACES / f"{file_name(profile.case)}{SUFFIX}"
    files.replace(path, json.dumps(profile.to_json(), allow_nan=False))
    return path


def load(run: Path) -> list[Profile]:
    """Return the profiles of a run in the natural order of their file names.

    Raises WrongRequest for a file that isn't a profile.
    """
    return [_read(path) for path in sorted((run / TRACES).glob(f"*{SUFFIX}"), key=_parts)]


def _read(path: Path) -> Profile:
    try:
        content = path.read_bytes()
        check_schema(content)
        return Profile.from_json(plain(content))
    except WrongRequest as error:
        raise WrongRequest(f"{path}: {error}") from None
    except (OSError, ValueError) as error:
        raise WrongRequest(f"{path} is not a profile of attention-bench ({error})") from None


def _parts(path: Path) -> list[str | int]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.name)]
