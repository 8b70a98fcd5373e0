"""Cases, records of them and environments, for tests that care about one of their values at a time."""

import random
from collections.abc import Iterable, Mapping
from typing import Any

from bench.plan.case import Case, Point
from bench.store.environment import Environment
from bench.store.metrics import REPORTED
from bench.store.record import Origin, Record, Samples
from tests.make.points import vit_s

ORIGIN = Origin(
    env_id="0123456789ab",
    device_name="A CPU",
    torch_version="2.13.0",
    commit="0123456789ab+",
    started_at="2025-01-31T12:00:00Z",
)


def case(implementation: str = "eager", **changes: Any) -> Case:
    """Return a case of the point of ViT-S."""
    return Case(vit_s(**changes), implementation)


def record(implementation: str = "eager", *, process: int = 0, status: str = "ok", **changes: Any) -> Record:
    """Return a record of three samples, some of its values changed."""
    metrics = {name: changes.pop(name) for name in REPORTED if name in changes}
    given = {
        "case": case(implementation),
        "origin": ORIGIN,
        "samples": Samples((0, 1, 2), ((0.5, 0.25), (0.5, 0.5), (1.0, 0.75)), (0, 1, 0), (0.0, 0.1, 0.0)),
        "metrics": {"calls_per_timing": 2, "settled": True, **metrics},
        **changes,
    }
    return Record(process=process, status=status, **given)


def samples(*values_s: float, **columns: tuple[int, ...]) -> Samples:
    """Return samples of one timing each; if no column says so, nothing disturbed them and rounds follow each other."""
    none = (0,) * len(values_s)
    usual = {"rounds": tuple(range(len(values_s))), "switches": none, "others": none}
    return Samples(timings_s=tuple((value_s,) for value_s in values_s), **{**usual, **columns})


def environment(**identity: Any) -> Environment:
    """Return the environment of a machine without a GPU, some of its identity changed."""
    same = {"cpu": "A CPU", "cores": 2, "torch": "2.13.0", "cuda": None, "gpus": {}}
    return Environment({**same, **identity}, {"load_1min": 0.5}, {"host": "here"})


def measured(
    case: Case,
    process: int,
    value_s: float,
    *,
    scatter: float = 1e-3,
    rounds: int = 2,
    noise: float = 0.0,
    seed: str = "",
    origin: Origin = ORIGIN,
    peak_bytes: int = 1024,
) -> Record:
    """Return a record of rounds that took this time, give or take a scatter of processes and the noise of rounds.

    It is the same at every call.
    """
    chance = random.Random(f"{case.name} {process} {seed}".strip())
    value_s *= chance.lognormvariate(0, scatter)
    every = samples(*(value_s * chance.lognormvariate(0, noise) for _ in range(rounds)))
    return record(case=case, process=process, origin=origin, samples=every, calls_per_timing=1, peak_bytes=peak_bytes)


def timed(points: Iterable[Point], seconds: Mapping[str, float], processes: int = 5, **options: Any) -> list[Record]:
    """Return the records of points at which each implementation takes its time, made by `measured`."""
    return [
        measured(Case(at, name), process, value_s, **options)
        for at in points
        for process in range(processes)
        for name, value_s in seconds.items()
    ]
