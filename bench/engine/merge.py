"""Merge the shards of a sweep into one run by joining the records of their journals."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.analyse.analysed_run import AnalysedRun
from bench.plan.case import Case
from bench.plan.errors import CannotWrite, WrongRequest, refusing
from bench.plan.invocation import short
from bench.plan.sweep import Sweep
from bench.store import environment, journal, plan, table
from bench.store.environment import Environment
from bench.store.files import Lock
from bench.store.record import Record

BESIDE = f"compare two runs with {short()} compare, or join their tables with pandas.concat"
"""The advice for runs that can't be merged."""


@dataclass(frozen=True, eq=False)
class Source:
    """A run to merge: its folder, its whole sweep, its environment and its journal."""

    folder: Path
    sweep: Sweep
    environment: Environment
    contents: journal.Contents


@dataclass(frozen=True)
class Merged:
    """The result of a merge: the numbers of earlier and added records, and notices about journals."""

    before: int
    added: int
    points: int
    planned: int
    notices: list[str]


def merge(out: Path, shards: Sequence[Path]) -> Merged:
    """Add the records of shards to a run, which may be new; records that it has already are left out.

    Raises WrongRequest if a folder is not a run, if sweeps or environments differ, or if two different records have
    the same case and process; CannotWrite if the run can't be written.
    """
    own = [out] if (out / journal.JOURNAL).exists() else []
    sources = [_read(folder) for folder in dict.fromkeys([*own, *shards])]
    for other in sources[1:]:
        _check(sources[0], other)
    records = _joined(sources)  # check everything before any change
    before = sources[0].contents.records if own else []
    known = {(record.case, record.process) for record in before}
    new = [record for record in records if (record.case, record.process) not in known]
    if new or not (out / table.RESULTS).exists():
        _write(out, sources, new)
    points = {record.case.point for record in records}
    notices = [notice for source in sources for notice in source.contents.notices()]
    return Merged(len(before), len(new), len(points), len(sources[0].sweep.points), notices)


def _read(folder: Path) -> Source:
    contents, here = journal.scan(folder), environment.load(folder)
    stored = plan.of(contents)
    if stored is None or here is None:
        lacks = journal.JOURNAL if stored is None else environment.ENVIRONMENT
        raise WrongRequest(f"{folder} can't be merged, because it has no {lacks}")
    foreign = {record.origin.env_id for record in contents.records} - {here.env_id}
    if foreign:
        raise WrongRequest(f"{folder} has records of {', '.join(sorted(foreign))}, but it is a run of {here.env_id}")
    return Source(folder, stored.sharded(None), here, contents)


def _check(first: Source, other: Source) -> None:
    """Raise WrongRequest if the runs are not parts of one sweep, measured in one environment."""
    pair = f"{first.folder} and {other.folder}"
    if differing := environment.differences(first.environment, other.environment):
        raise WrongRequest(f"{pair} were measured under different conditions ({'; '.join(differing)}); {BESIDE}")
    plans = [_shared(each.sweep) for each in (first, other)]
    if unlike := [name for name in plans[0] if plans[0][name] != plans[1][name]]:
        raise WrongRequest(f"{pair} have different sweeps: they differ in {', '.join(unlike)}; {BESIDE}")


def _shared(sweep: Sweep) -> dict[str, object]:
    """Return the facts that parts of one sweep share."""
    return {
        "points": {*sweep.points},
        "implementations": {*sweep.implementations},
        "baseline": sweep.baseline,
        "effort": sweep.effort,
        "control": sweep.control,
    }


def _joined(sources: Sequence[Source]) -> list[Record]:
    """Return each record once; raises WrongRequest for two different ones of a case and process."""
    records: dict[tuple[Case, int], tuple[Source, Record]] = {}
    for source in sources:
        for record in source.contents.records:
            other, same = records.setdefault((record.case, record.process), (source, record))
            if other is not source and same != record:
                raise WrongRequest(
                    f"{other.folder} and {source.folder} both have {record.case.name}, process {record.process}, so "
                    "they are not shards of one run"
                )
    return [record for _, record in records.values()]


def _write(out: Path, sources: Sequence[Source], new: Sequence[Record]) -> None:
    """Add records to a run's journal, and write its plan, environment and table."""
    with Lock(out), refusing(f"{out} can't be written", CannotWrite):
        for source in sources:
            environment.save(source.environment, out)
        contents = journal.scan(out)
        plan.keep(sources[0].sweep, contents)  # the folder may be one of a shard
        contents.append(new)
        table.save(AnalysedRun(out, contents=contents).results, out)
