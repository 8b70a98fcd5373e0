"""Profiles of chosen cases, each made by a worker of its own and written into the run's folder of traces."""

import dataclasses
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.analyse.profile import operator_table
from bench.engine.pool import COMPILED
from bench.engine.run import now
from bench.engine.scratch import Scratch
from bench.engine.worker import Died, Worker
from bench.plan.case import Case
from bench.plan.errors import WrongRequest
from bench.store import machine
from bench.store.profile import SCHEMA_VERSION, TRACES, Profile, file_name, save
from bench.store.record import Origin

MODULE = "bench.profiling.worker"

CASE_S = 300.0
"""The longest that one case may take, its compilation included."""


@dataclass(frozen=True)
class Traced:
    """A case with the file of its trace and its profile, or why there is none."""

    case: Case
    trace: Path
    profile: Profile | None
    objection: str = ""


def write(cases: Sequence[Case], run: Path) -> Iterator[Traced]:
    """Profile the cases one after the other; each is yielded when its files are written.

    Those are the trace, the profile, and the table of its operators.
    Raises WrongRequest when they can't be written into the folder `traces` of the run.
    """
    folder = run / TRACES
    _check(folder)
    with Scratch() as scratch:
        for case in cases:
            yield _traced(case, folder / f"{file_name(case)}.json.gz", scratch.folder)


def _check(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise WrongRequest(f"the trace folder {folder} can't be written: {error.strerror}") from None


def _traced(case: Case, path: Path, scratch: Path) -> Traced:
    answer = _ask(case, path, scratch)
    if answer["objection"]:
        return Traced(case, path, None, answer["objection"])
    profile = Profile.from_json(
        {
            "schema_version": SCHEMA_VERSION,
            **case.columns(),
            **dataclasses.asdict(_origin(case, answer["facts"])),
            **answer["profile"],
        }
    )
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
        with Worker(case.point.allocator, case.point.threads, scratch / COMPILED, MODULE) as worker:
            worker.ready()
            return worker.ask(request, CASE_S)
    except Died as death:
        return {"objection": death.detail}


def _origin(case: Case, torch_facts: dict[str, Any]) -> Origin:
    here = machine.observe(torch_facts, {}, {})
    return Origin(
        env_id=here.env_id,
        device_name=here.device_name(case.point.device),
        torch_version=here.identity["torch"],
        commit=here.context["commit"],
        started_at=now(),
    )
