"""Runs on disk."""

from collections.abc import Sequence
from pathlib import Path

from bench.plan.case import CONTROL, Case
from bench.plan.sweep import Sweep
from bench.store import environment as environments
from bench.store import journal, plan, table
from bench.store.environment import Environment
from bench.store.record import Record
from tests.make.records import environment
from tests.make.results import modelled, of_wide, summarise


def planned(records: Sequence[Record]) -> Sweep:
    """Return a sweep of what records hold."""
    points = tuple(dict.fromkeys(each.case.point for each in records))
    names = dict.fromkeys(each.case.implementation for each in records if each.case.implementation != CONTROL)
    return Sweep("made up", points, ("eager", *(name for name in names if name != "eager")))


def saved(folder: Path, records: Sequence[Record], where: Environment | None = None) -> Path:
    """Write a run of these records with eager as its baseline, and return its new folder."""
    folder.mkdir()
    if where:
        environments.save(where, folder)
    plan.keep(planned(records), journal.scan(folder))
    journal.scan(folder).append(records)
    table.save(summarise(records, "eager"), folder)
    return folder


def quick(folder: Path) -> Path:
    """Write a run of `quick`, and return its new folder."""
    return saved(folder, of_wide(), environment())


def of(folder: Path, cases: Sequence[Case], processes: int = 3) -> Path:
    """Write a run of some cases, and return its new folder."""
    return saved(folder, [modelled(case, n) for case in cases for n in range(processes)])
