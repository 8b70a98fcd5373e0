"""Runs that become one: the shards of a sweep, from one machine or from several.

A machine's records stay its own: those of each environment are in a run folder of their own.
"""

import dataclasses
import itertools
import re
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from bench.analyse.rows import grouped
from bench.engine.run_folder import FILES, RunFolder
from bench.plan.case import Case
from bench.plan.errors import WrongRequest
from bench.plan.grid import without_columns
from bench.plan.invocation import short, suite
from bench.plan.sweep import Sweep
from bench.store import environment, journal, plan, saved_run
from bench.store.environment import Environment
from bench.store.record import Record
from bench.store.table import RESULTS

BESIDE = f"{short()} compare shows two runs beside each other, pandas.concat joins their tables"
"""What to do with runs that can't be merged."""


@dataclass(frozen=True, eq=False)
class Source:
    """A run that is merged: its folder, its whole sweep, its environment and its journal."""

    folder: Path
    sweep: Sweep
    environment: Environment
    contents: journal.Contents


@dataclass(frozen=True)
class Merged:
    """What a merge did for one machine: its folder, the numbers of records that were there and that were added."""

    name: str
    folder: Path
    before: int
    added: int
    points: int
    planned: int


def merge(out: Path, shards: Sequence[Path]) -> tuple[list[Merged], list[str]]:
    """Add the records of shards to a run, which may be new; return what was done, and notices about their journals.

    The same record again changes nothing.
    Raises WrongRequest if a folder is no run, if two runs have two sweeps or two versions of torch, or if they hold two
    records of one case and process.
    """
    own = [out] if (out / journal.JOURNAL).exists() else []
    inner = [out / name for name in saved_run.folders_of(out)]
    sources = [_read(folder) for folder in dict.fromkeys([*own, *inner, *_expanded(shards)])]
    _check(sources)
    by_machine = grouped(sources, lambda source: source.environment.env_id)
    lines = {env_id: _lines(each) for env_id, each in by_machine.items()}  # all checks come before any change
    folders = _folders(out, by_machine)
    done = [_write(folders[env_id], each, lines[env_id]) for env_id, each in by_machine.items()]
    if len(by_machine) > 1:
        saved_run.save_machines(out, {folder.name: env_id for env_id, folder in folders.items()})
        for name in FILES:  # those of a run of one machine are in a folder of their own now
            (out / name).unlink(missing_ok=True)
    return done, [notice for source in sources for notice in source.contents.notices()]


def _expanded(shards: Iterable[Path]) -> Iterator[Path]:
    for shard in shards:
        inner = saved_run.folders_of(shard)
        yield from [shard / name for name in inner] if inner else [shard]


def _read(folder: Path) -> Source:
    contents, here = journal.scan(folder), environment.load(folder)
    stored = plan.of(contents)
    if stored is None or here is None:
        lacks = journal.JOURNAL if stored is None else environment.ENVIRONMENT
        raise WrongRequest(f"{folder} is no run that can be merged: it holds no {lacks}")
    foreign = {record.origin.env_id for record in contents.records} - {here.env_id}
    if foreign:
        raise WrongRequest(f"{folder} holds records of {', '.join(sorted(foreign))}, but it is a run of {here.env_id}")
    return Source(folder, stored.sharded(None), here, contents)


def _check(sources: Sequence[Source]) -> None:
    """Raise WrongRequest if the runs are not parts of one sweep, measured with one version of torch."""
    first = sources[0]
    for other in sources[1:]:
        pair = f"{first.folder} and {other.folder}"
        torch = [str(each.environment.identity.get("torch")) for each in (first, other)]
        if torch[0] != torch[1]:
            raise WrongRequest(
                f"{pair} were measured with two versions of torch, {torch[0]} and {torch[1]}: merge those of each "
                f"version into a run of its own, then {suite()} compare"
            )
        is_same_machine = first.environment.env_id == other.environment.env_id
        plans = [_comparable(each.sweep, whole=is_same_machine) for each in (first, other)]
        if differing := [name for name in plans[0] if plans[0][name] != plans[1][name]]:
            raise WrongRequest(f"{pair} are of two sweeps: they differ in {', '.join(differing)}; {BESIDE}")
    for one, other in itertools.combinations(sources, 2):
        ours, theirs = one.environment.runtimes, other.environment.runtimes
        if unlike := sorted(name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name]):
            raise WrongRequest(
                f"{one.folder} and {other.folder} were measured with two versions of {', '.join(unlike)}"
            )


def _comparable(sweep: Sweep, *, whole: bool) -> dict[str, object]:
    """Return what parts of one sweep share; points of another machine may differ in what follows from the machine."""
    return {
        "points": {point if whole else without_columns(point) for point in sweep.points},
        "implementations": {*sweep.implementations},
        "baseline": sweep.baseline,
        "effort": sweep.effort,
        "control": sweep.control,
    }


def _lines(sources: Sequence[Source]) -> list[Record]:
    """Return each record that counts once; raises WrongRequest for two of a case and process."""
    lines: dict[tuple[Case, int], tuple[Source, Record]] = {}
    for source in sources:
        for record in source.contents.records:
            other, same = lines.setdefault((record.case, record.process), (source, record))
            if other is not source and same != record:
                raise WrongRequest(
                    f"{other.folder} and {source.folder} hold two records of {record.case.name}, process "
                    f"{record.process}: they are no shards of one run"
                )
    return [record for _, record in lines.values()]


def _folders(out: Path, by_machine: Mapping[str, Sequence[Source]]) -> dict[str, Path]:
    """Return the folder of each machine: the merged run itself if there is one machine, else one inside it."""
    if len(by_machine) == 1:
        folders = {env_id: out / name for name, env_id in saved_run.folders_of(out).items()}
        return {env_id: folders.get(env_id, out) for env_id in by_machine}
    names = {env_id: _folder_name(sources[0].environment) for env_id, sources in by_machine.items()}
    taken = list(names.values())
    return {env_id: out / (f"{name}-{env_id}" if taken.count(name) > 1 else name) for env_id, name in names.items()}


def _folder_name(of: Environment) -> str:
    name = str(of.context.get("machine_name") or of.env_id)
    return re.sub(r"[^\w.-]+", "-", name).strip(".-") or of.env_id


def _write(folder: Path, sources: Sequence[Source], lines: Sequence[Record]) -> Merged:
    """Add the records that the run of one machine lacks to its journal; one that lacks nothing is not touched."""
    sweep, of_all = sources[0].sweep, (source.environment.runtimes for source in sources)
    here = dataclasses.replace(sources[0].environment, runtimes=dict(ChainMap(*map(dict, of_all))))
    before = journal.scan(folder)
    known = {(record.case, record.process) for record in before.records}
    new = [record for record in lines if (record.case, record.process) not in known]
    points = {record.case.point for record in lines}
    merged = Merged(here.env_id, folder, len(known), len(new), len(points), len(sweep.points))
    if new or not (folder / RESULTS).exists():
        with closing(RunFolder(plan.of(before) or sweep, folder)) as run_folder:
            run_folder.prepare()
            run_folder.open(here)
            plan.keep(sweep, run_folder.records.contents)  # the folder may be one of a shard
            run_folder.records.add(new)
            run_folder.tabulate()
    return merged
