"""Runs on disk for tests of pages and histories, and what a page has: the data of its script, and packed text."""

import base64
import dataclasses
import functools
import json
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.plan.case import Case
from bench.plan.sweep import load_sweep
from bench.store.record import Record
from tests import examples
from tests.examples import environment, point
from tests.show import example_results


@functools.cache
def records(processes: int = 3) -> tuple[Record, ...]:
    """Return the records of wide.toml; mha can't do the article's points, and what is compiled is so in process 0."""
    cases = list(load_sweep(str(example_results.WIDE)).cases())
    return tuple(_compiled(example_results.record(case, n, _fate(case))) for case in cases for n in range(processes))


def _compiled(record: Record) -> Record:
    if not record.case.implementation.startswith("compiled_"):
        return record
    own = {"compile_s": 0.9, "compile_cached": True} if record.process else {"compile_s": 5.8, "compile_cached": False}
    return dataclasses.replace(record, metrics={**record.metrics, **own})


def quick(folder: Path) -> Path:
    """Write a run of `quick`, and return its new folder."""
    return examples.saved(folder, records(), environment())


def of(folder: Path, cases: Sequence[Case], processes: int = 3) -> Path:
    """Write a run of some cases, and return its new folder."""
    return examples.saved(folder, [example_results.record(case, n) for case in cases for n in range(processes)])


def _fate(case: Case) -> tuple[str, str] | None:
    narrow = case.implementation == "mha" and case.point.token_len != case.point.channels
    return ("unsupported", "mha needs token_len = channels") if narrow else None


def weekly(folder: Path, sdpa_s: Sequence[float], processes: int = 6) -> list[Path]:
    """Write a run for each latency of sdpa, one each week, where eager takes a second; return their folders."""
    folder.mkdir(exist_ok=True)
    folders = []
    for number, latency_s in enumerate(sdpa_s):
        origin = dataclasses.replace(
            examples.ORIGIN, started_at=f"2026-01-{1 + 7 * number:02d}T12:00:00Z", torch_version=f"2.{10 + number}.0"
        )
        records = [
            examples.measured(Case(point(num_tokens=tokens), name), process, value, origin=origin, seed=str(number))
            for tokens in (50, 197)
            for name, value in (("eager", 1.0), ("sdpa", latency_s))
            for process in range(processes)
        ]
        folders.append(examples.saved(folder / f"week-{number + 1}", records, examples.environment()))
    return folders


def data_of(page: str) -> dict[str, Any]:
    """Return what the script of a page reads."""
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert data
    return dict(json.loads(data[1]))


def unpacked(text: str) -> str:
    """Return a packed text."""
    return zlib.decompress(base64.b64decode(text)).decode()
