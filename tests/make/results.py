"""Made-up but plausible results."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pandas as pd

from bench.analyse.rows import grouped
from bench.analyse.summary import Summary
from bench.plan.case import Case, Point
from bench.plan.sweep import load_sweep
from bench.store.record import Record, Samples
from bench.store.table import of_rows
from tests.make.records import measured, record

WIDE = Path(__file__).parent / "wide.toml"
"""The sweep of most example results."""

ROUNDS = 12

CORE_COST = {
    "eager": 1.0,
    "manual": 1.12,
    "online": 0.9,
    "sdpa": 0.55,
    "compiled_eager": 0.93,
    "compiled_sdpa": 0.548,
    "mha": 0.8,
}
"""The time of each implementation's core relative to eager's."""

LINEAR = ("online", "sdpa", "compiled_sdpa", "mha")
"""Those that hold no score for each pair of tokens."""

Fate = tuple[str, str]
"""A status and its detail."""


def summarise(records: Iterable[Record], baseline: str) -> pd.DataFrame:
    """Return the table of results of the records, a row per case in the order of their first record."""
    return of_rows(of_records(records, baseline).all_rows())


def of_records(records: Iterable[Record], baseline: str) -> Summary:
    """Return the summary of the records of a run."""
    return Summary(baseline, grouped(records, lambda record: record.case.point).values())


def quick() -> pd.DataFrame:
    """Return results of the sweep of WIDE."""
    return _quick().copy()


@functools.cache
def _quick() -> pd.DataFrame:
    return summarise(of_wide(), "eager")


@functools.cache
def of_wide(processes: int = 3) -> tuple[Record, ...]:
    """Return the records of WIDE; mha can't do the article's points, and process 0 does the compiling."""
    return tuple(
        _compiled(modelled(case, n, _fate(case))) for case in load_sweep(str(WIDE)).cases() for n in range(processes)
    )


def _fate(case: Case) -> Fate | None:
    narrow = case.implementation == "mha" and case.point.token_len != case.point.channels
    return ("unsupported", "mha needs token_len = channels") if narrow else None


def _compiled(record: Record) -> Record:
    if not record.case.implementation.startswith("compiled_"):
        return record
    own = {"compile_s": 0.9, "compile_cached": True} if record.process else {"compile_s": 5.8, "compile_cached": False}
    return dataclasses.replace(record, metrics={**record.metrics, **own})


def results(cases: Iterable[Case], fates: Mapping[Case, Fate] | None = None, processes: int = 3) -> pd.DataFrame:
    """Return the table of results of these cases, measured unless another status is given."""
    return summarise([modelled(case, n, (fates or {}).get(case)) for case in cases for n in range(processes)], "eager")


def timed(
    points: Iterable[Point], seconds: Mapping[str, Callable[[Point], float] | float], processes: int = 3
) -> pd.DataFrame:
    """Return the table of results in which each implementation takes its time at every point."""
    records = [
        modelled(Case(at, name), process, None, of(at) if callable(of) else of)
        for at in points
        for name, of in seconds.items()
        for process in range(processes)
    ]
    return summarise(records, "eager")


def modelled(case: Case, process: int, fate: Fate | None = None, latency_s: float | None = None) -> Record:
    """Return the record of a case in one process, the same at every call."""
    if fate:
        status, detail = fate
        return record(case=case, process=process, status=status, detail=detail, samples=Samples(), metrics={})
    value_s = latency_s or model_s(case)
    return measured(case, process, value_s, scatter=0.003, rounds=ROUNDS, noise=0.004, peak_bytes=peak_bytes(case))


def model_s(case: Case) -> float:
    """Return a plausible latency in seconds: projections, and the core by its implementation's cost."""
    p, cost = case.point, CORE_COST.get(case.implementation, 1.0)
    projections = p.batch * p.num_tokens * (6 * p.token_len + 2 * p.channels) * p.channels
    core = p.batch * p.num_tokens**2 * (4 * p.channels + 60 * p.num_heads)
    return 30e-6 + (projections + core * cost) / 1e11


def peak_bytes(case: Case) -> int:
    """Return a peak as of a real layer: two score-sized tensors and some of the input's size, or linear in tokens."""
    p = case.point
    scores, tokens = p.batch * p.num_heads * p.num_tokens**2 * 4, p.batch * p.num_tokens * p.channels * 4
    return 5 * tokens if case.implementation in LINEAR else 2 * scores + 3 * tokens
