"""Runs on disk, and what a page of one has: the data of its script, and packed text."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from bench.analyse.summary import summarise
from bench.plan.case import Case
from bench.store import environment as environments
from bench.store import journal, table
from bench.store.environment import Environment
from bench.store.record import Record
from tests.make.points import vit_s
from tests.make.records import ORIGIN, environment, timed
from tests.make.results import modelled, of_wide


def saved(folder: Path, records: Sequence[Record], where: Environment | None = None) -> Path:
    """Write a run of these records with eager as its baseline, and return its new folder."""
    folder.mkdir()
    if where:
        environments.save(where, folder)
    journal.append(folder, records)
    table.save(summarise(records, "eager"), folder)
    return folder


def quick(folder: Path) -> Path:
    """Write a run of `quick`, and return its new folder."""
    return saved(folder, of_wide(), environment())


def of(folder: Path, cases: Sequence[Case], processes: int = 3) -> Path:
    """Write a run of some cases, and return its new folder."""
    return saved(folder, [modelled(case, n) for case in cases for n in range(processes)])


def weekly(folder: Path, sdpa_s: Sequence[float], processes: int = 6) -> list[Path]:
    """Write a run for each latency of sdpa, one each week, where eager takes a second; return their folders."""
    folder.mkdir(exist_ok=True)
    folders = []
    for number, latency_s in enumerate(sdpa_s):
        origin = dataclasses.replace(
            ORIGIN, started_at=f"2026-01-{1 + 7 * number:02d}T12:00:00Z", torch_version=f"2.{10 + number}.0"
        )
        points = [vit_s(num_tokens=tokens) for tokens in (50, 197)]
        records = timed(points, {"eager": 1.0, "sdpa": latency_s}, processes, origin=origin, seed=str(number))
        folders.append(saved(folder / f"week-{number + 1}", records, environment()))
    return folders
