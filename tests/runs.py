"""Runs that nobody measured, on disk as a sweep leaves them."""

import random
from collections.abc import Sequence
from pathlib import Path

from bench.analyse.summary import summarise
from bench.plan.case import Case
from bench.store import environment, journal, table
from bench.store.environment import Environment
from bench.store.record import Origin, Record
from tests import examples

SPEEDS = {"float32": 1.0, "bfloat16": 2.0, "float16": 4.0}
"""How many times as fast as in float32 a precision is."""


def measured(
    case: Case, process: int, value_s: float, *, scatter: float = 1e-3, seed: str = "", origin: Origin = examples.ORIGIN
) -> Record:
    """Return a record of two rounds that took this time, give or take a scatter, and the same at every call."""
    value_s *= random.Random(f"{case.name} {process} {seed}").lognormvariate(0, scatter)
    samples = examples.timed(value_s, value_s)
    return examples.record(
        case=case, process=process, origin=origin, samples=samples, calls_per_timing=1, peak_bytes=1024
    )


def in_precision(name: str, dtype: str, process: int, seed: int | None = 7, slowness: float = 1.0) -> Record:
    """Return a record whose rounds take the time of the precision, on a machine that gets slower."""
    seconds = [slowness * (1 + process) * (1 + number) / SPEEDS[dtype] for number in range(5)]
    case = examples.case(name, dtype=dtype)
    return examples.record(case=case, process=process, samples=examples.timed(*seconds), seed=seed)


def saved(folder: Path, records: Sequence[Record], where: Environment | None = None) -> Path:
    """Write a run of these records with eager as its baseline, and return its new folder."""
    folder.mkdir()
    if where:
        environment.save(where, folder)
    journal.append(folder, records)
    table.save(summarise(records, "eager"), folder)
    return folder
