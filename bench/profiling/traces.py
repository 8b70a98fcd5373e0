"""Profiles of chosen cases, each made by a separate worker and written into the run's folder of traces."""

import dataclasses
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.analyse.profile import operator_table
from bench.engine.pool import COMPILED, Scratch
from bench.engine.replicate import now
from bench.engine.worker import Died, Worker, started
from bench.machine import facts
from bench.plan.case import Case
from bench.plan.errors import WrongRequest
from bench.store.profile import SCHEMA_VERSION, TRACES, Profile, file_name, save
from bench.store.record import Origin

MODULE = "bench.profiling.worker"

CASE_S = 300.0
"""The longest that one case may take, its compilation included."""


@dataclass(frozen=True)
class Traced:
    """A case with the file of its trace and its profile; if that is None, `reason` says why."""

    case: Case
    trace: Path
    profile: Profile | None
    reason: str = ""


def write(cases: Sequence[Case], run: Path) -> Iterator[Traced]:
    """Profile the cases one after the other; yield each when its trace, profile and table of operators are written.

    Raises WrongRequest if the run's folder `traces` can't be written.
    """
    folder = run / TRACES
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise WrongRequest(f"the trace folder {folder} can't be written: {error.strerror}") from None
    with closing(Scratch()) as scratch:
        for case in cases:
            yield _traced(case, folder / f"{file_name(case)}.json.gz", scratch.folder)


def _traced(case: Case, path: Path, scratch: Path) -> Traced:
    reply = _ask(case, path, scratch)
    if reply["reason"]:
        return Traced(case, path, None, reply["reason"])
    origin = dataclasses.asdict(_origin(case, reply["facts"]))
    profile = Profile.from_json({"schema_version": SCHEMA_VERSION, **case.columns(), **origin, **reply["profile"]})
    save(profile, path.parents[1])
    operator_table(profile).to_csv(path.with_name(f"{file_name(case)}.operators.csv"), index=False)
    return Traced(case, path, profile)


def _ask(case: Case, path: Path, scratch: Path) -> dict[str, Any]:
    request = {
        "request": "trace",
        "point": dataclasses.asdict(case.point),
        "implementation": case.implementation,
        "path": str(path.absolute()),
        "scratch": str(scratch),
    }
    try:
        with Worker(started(MODULE, case.point.allocator, case.point.threads, scratch / COMPILED)) as worker:
            worker.ready()
            return worker.ask(request, CASE_S)
    except Died as death:
        return {"reason": death.detail}


def _origin(case: Case, torch_facts: dict[str, Any]) -> Origin:
    here = facts.observe(torch_facts, {}, {})
    return Origin(
        env_id=here.env_id,
        device_name=here.device_name(case.point.device),
        torch_version=here.identity["torch"],
        commit=here.context["commit"],
        started_at=now(),
    )
