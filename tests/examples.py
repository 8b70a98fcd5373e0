"""Points, cases, records, environments and saved runs for tests that care about one of their values at a time."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from bench.analyse.summary import summarise
from bench.plan.case import COLUMNS, Case, Point
from bench.plan.names import LAYERS
from bench.store import environment as environments
from bench.store import journal, table
from bench.store.environment import Environment
from bench.store.metrics import REPORTED
from bench.store.record import STATUSES, Origin, Record, Samples
from tests.points import TINY

POINT: dict[str, Any] = {
    **{name: TINY.get(name) for name in COLUMNS},
    "batch": 8,
    "num_tokens": 197,
    "token_len": 384,
    "channels": 384,
    "num_heads": 6,
}

ORIGIN = Origin(
    env_id="0123456789ab",
    device_name="A CPU",
    torch_version="2.13.0",
    commit="0123456789ab+",
    started_at="2025-01-31T12:00:00Z",
)


SPEEDS = {"float32": 1.0, "bfloat16": 2.0, "float16": 4.0}
"""How many times as fast as in float32 a precision is."""


def point(**changes: Any) -> Point:
    """Return the point of ViT-S at 224 pixels, some of its values changed."""
    return Point(**{**POINT, **changes})


def case(implementation: str = "eager", **changes: Any) -> Case:
    """Return a case of that point."""
    return Case(point(**changes), implementation)


def record(implementation: str = "eager", *, process: int = 0, status: str = "ok", **changes: Any) -> Record:
    """Return a record of three samples, some of its values changed."""
    samples = Samples((0, 1, 2), ((0.5, 0.25), (0.5, 0.5), (1.0, 0.75)), (0, 1, 0), (0, 0, 7))
    metrics = {name: changes.pop(name) for name in REPORTED if name in changes}
    given = {
        "case": case(implementation),
        "origin": ORIGIN,
        "samples": samples,
        "metrics": {"calls_per_timing": 2, "settled": True, **metrics},
        **changes,
    }
    return Record(process=process, status=status, **given)


def timed(*values_s: float, **columns: tuple[int, ...]) -> Samples:
    """Return samples of one timing each; if no column says so, nothing disturbed them and rounds follow each other."""
    none = (0,) * len(values_s)
    usual = {"rounds": tuple(range(len(values_s))), "switches": none, "faults": none}
    return Samples(timings_s=tuple((value_s,) for value_s in values_s), **{**usual, **columns})


def environment(**identity: Any) -> Environment:
    """Return the environment of a machine without a GPU, some of its identity changed."""
    same = {"cpu": "A CPU", "cores": 2, "torch": "2.13.0", "cuda": None, "gpus": {}}
    return Environment({**same, **identity}, {"load_1min": 0.5}, {"host": "here"})


counts = st.integers(1, 1 << 20)
seconds = st.floats(0, 1e6, allow_nan=False)
anything_said = st.text(st.characters(), max_size=20)  # every code point, because details quote foreign programs

points = st.builds(
    Point,
    layer=st.sampled_from(list(LAYERS)),
    device=st.sampled_from(["cpu", "cuda", "cuda:0", "cuda:1", "cuda:11"]),
    dtype=st.sampled_from(list(COLUMNS["dtype"].choices)),
    mode=st.sampled_from(list(COLUMNS["mode"].choices)),
    batch=counts,
    num_tokens=counts,
    token_len=counts,
    channels=counts,
    num_heads=counts,
    qkv_bias=st.booleans(),
    qk_scale=st.none() | st.floats(-4, 4, width=16).map(abs),
    key_channels=st.none() | counts,
    image_size=st.none() | counts,
    patch_size=st.none() | counts,
    mask=st.sampled_from(list(COLUMNS["mask"].choices)),
    threads=counts,
    allocator=st.sampled_from(list(COLUMNS["allocator"].choices)),
    timing=st.sampled_from(list(COLUMNS["timing"].choices)),
)
"""Any point that can be written down, whether or not it keeps the rules of a grid."""

cases = st.builds(Case, points, st.sampled_from(["eager", "sdpa", "users.kernel:adapt"]))


@st.composite
def sample_columns(draw: st.DrawFn) -> Samples:
    """Draw samples whose columns are equally long."""
    count = draw(st.integers(1, 4))

    def column(values: st.SearchStrategy[Any], *, unique: bool = False) -> tuple[Any, ...]:
        return tuple(draw(st.lists(values, min_size=count, max_size=count, unique=unique)))

    timings = st.lists(seconds.filter(bool), min_size=1, max_size=3).map(tuple)
    return Samples(column(counts, unique=True), column(timings), column(counts), column(counts))


METRIC: dict[type, st.SearchStrategy[Any]] = {
    bool: st.none() | st.booleans(),
    int: st.none() | st.integers(0, 1 << 60),
    float: st.none() | seconds,
    str: st.none() | anything_said.filter(bool),  # an empty text is one that was not measured
    tuple: st.lists(anything_said, max_size=3).map(tuple),
}
"""What a metric of each kind may be."""

records = st.builds(
    Record,
    case=cases,
    process=st.integers(0, 99),
    status=st.sampled_from(STATUSES),
    origin=st.builds(Origin, *[anything_said] * 5),
    detail=anything_said,
    samples=sample_columns(),
    metrics=st.fixed_dictionaries({}, optional={name: METRIC[metric.kind] for name, metric in REPORTED.items()}),
)


def measured(
    case: Case, process: int, value_s: float, *, scatter: float = 1e-3, seed: str = "", origin: Origin = ORIGIN
) -> Record:
    """Return a record of two rounds that took this time, give or take a scatter, and the same at every call."""
    value_s *= random.Random(f"{case.name} {process} {seed}").lognormvariate(0, scatter)
    samples = timed(value_s, value_s)
    return record(case=case, process=process, origin=origin, samples=samples, calls_per_timing=1, peak_bytes=1024)


def in_precision(name: str, dtype: str, process: int, seed: int | None = 7, slowness: float = 1.0) -> Record:
    """Return a record whose rounds take the time of the precision, on a machine that gets slower."""
    seconds = [slowness * (1 + process) * (1 + number) / SPEEDS[dtype] for number in range(5)]
    return record(case=case(name, dtype=dtype), process=process, samples=timed(*seconds), seed=seed)


def saved(folder: Path, records: Sequence[Record], where: Environment | None = None) -> Path:
    """Write a run of these records with eager as its baseline, and return its new folder."""
    folder.mkdir()
    if where:
        environments.save(where, folder)
    journal.append(folder, records)
    table.save(summarise(records, "eager"), folder)
    return folder
