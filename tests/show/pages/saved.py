"""Runs on disk for tests of the pages: the sweep of wide.toml as somebody might have measured it."""

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path

from bench.plan.case import Case
from bench.plan.sweep import load_sweep
from bench.store.record import Record
from tests import examples
from tests.examples import environment
from tests.show import example_results


@functools.cache
def records(processes: int = 3) -> tuple[Record, ...]:
    """Return the records of wide.toml; mha can't do the article's points, and what is compiled is so in process 0."""
    cases = list(load_sweep(str(example_results.WIDE)).cases())
    return tuple(_compiled(example_results.record(case, n, _fate(case))) for case in cases for n in range(processes))


def _compiled(record: Record) -> Record:
    if not record.case.implementation.startswith("compiled_"):
        return record
    found = (
        {"compile_s": 0.9, "compile_cached": True} if record.process else {"compile_s": 5.8, "compile_cached": False}
    )
    return dataclasses.replace(record, metrics={**record.metrics, **found})


def quick(folder: Path) -> Path:
    """Write a run of `quick`, and return its new folder."""
    return examples.saved(folder, records(), environment())


def of(folder: Path, cases: Sequence[Case], processes: int = 3) -> Path:
    """Write a run of some cases, and return its new folder."""
    return examples.saved(folder, [example_results.record(case, n) for case in cases for n in range(processes)])


def _fate(case: Case) -> tuple[str, str] | None:
    narrow = case.implementation == "mha" and case.point.token_len != case.point.channels
    return ("unsupported", "mha needs token_len = channels") if narrow else None
