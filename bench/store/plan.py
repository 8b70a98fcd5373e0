"""The plan of a run, as plan.json: the points, the implementations, the baseline and the effort at its beginning.

A resumed run goes on with its own plan, not with the one that is asked for later.
"""

import dataclasses
import json
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from bench.plan.case import AFTER, BEFORE, CONTROL, Point
from bench.plan.errors import WrongRequest
from bench.plan.grid import expand, parse_shard
from bench.plan.sweep import EFFORT_KEYS, Effort, Request, Sweep, altered, load_sweep
from bench.plan.sweep import effort_of as read_effort
from bench.store import files, journal
from bench.store.record import OLDEST_SCHEMA, SCHEMA_VERSION, check_schema, schema_of
from bench.store.typed import decode

PLAN = "plan.json"

WISHES = ("bound", "within_s")
"""The values of an effort that a run may go on with in place of its own: how sure its answers should be, and when."""

WAYS_OUT = "use a new folder, or --extend to add to this one"

POINTS = ',\n  "points": [\n'
"""The text before the points."""

HEAD_CRC32 = ',\n  "head_crc32":'
"""The text behind what `head_crc32` is made of."""


class Made(msgspec.Struct):
    """What results.csv was made from, the bytes of the journal, and its CRC-32: so an outdated table is told."""

    journal_bytes: int
    results_crc32: int


class _OfTable(msgspec.Struct):
    made: Made | None = None


class _Plan(msgspec.Struct):
    name: str
    baseline: str
    implementations: tuple[str, ...]
    effort: Effort
    points: tuple[Point, ...]
    control: bool = False
    shard: str = ""
    head_crc32: int | None = None
    points_crc32: int | None = None


def save(sweep: Sweep, run: Path, made: Made | None = None) -> None:
    """Write plan.json of a run, a line for each point; without `made` the table stays what it was.

    Raises OSError if it can't be written.
    """
    made = made or made_of(run)
    head = {
        "schema_version": SCHEMA_VERSION,
        "name": sweep.name,
        "baseline": sweep.baseline,
        "implementations": [*sweep.implementations],
        "control": sweep.control,
        "effort": dataclasses.asdict(sweep.effort),
        **({"shard": str(sweep.shard)} if sweep.shard else {}),
    }
    points = sweep.whole or sweep.points
    columns = ({name: value for name, value in vars(point).items() if value is not None} for point in points)
    lines = [f"    {json.dumps(each)}" for each in columns]
    listed = ",\n".join(lines) + "\n  ]\n}\n"
    text = json.dumps(head, indent=2).removesuffix("\n}")
    checks = {
        "head_crc32": zlib.crc32(text.encode()),
        **({"made": msgspec.to_builtins(made)} if made else {}),
        "points_crc32": zlib.crc32(listed.encode()),
    }
    checked = json.dumps(checks, indent=2).removeprefix("{").removesuffix("\n}")
    files.replace(run / PLAN, f"{text},{checked}{POINTS}{listed}")


def made_of(run: Path) -> Made | None:
    """Return what the table of a run was made from, None if that isn't known."""
    try:
        return decode(_OfTable, (run / PLAN).read_bytes()).made
    except (OSError, ValueError):
        return None


def load(run: Path) -> Sweep | None:
    """Return the plan of a run folder, None if nothing was planned there.

    A folder that has lost its plan has that of its records. Raises WrongRequest for a broken or changed file or one of
    another schema, and for a plan that this suite can't carry out.
    """
    path = run / PLAN
    try:
        content = path.read_bytes()
        check_schema(schema_of(content), oldest=OLDEST_SCHEMA, what="plans")
        planned = decode(_Plan, content)
        _check(planned, content)
        return _sweep(planned)
    except (FileNotFoundError, NotADirectoryError):
        return _of_records(run)
    except WrongRequest as error:
        raise WrongRequest(f"{path}: {error}") from None
    except OSError as error:
        raise WrongRequest(f"{path} can't be read: {error.strerror}") from None
    except ValueError as error:
        raise WrongRequest(f"{path} is no plan of attention-bench ({error})") from None


def _check(planned: _Plan, content: bytes) -> None:
    """Raise WrongRequest if a part of a plan isn't as it was written; older plans have checksums of fewer parts."""
    head, points = content.partition(HEAD_CRC32.encode())[0], content.partition(POINTS.encode())[2]
    for part, text, crc32 in (("head", head, planned.head_crc32), ("points", points, planned.points_crc32)):
        if crc32 is not None and crc32 != zlib.crc32(text):
            raise WrongRequest(
                f"it was changed since the run wrote it: its {part} must have the CRC-32 {crc32}, got "
                f"{zlib.crc32(text)}; bring it back, or remove it: then the plan is that of the records"
            )


def _of_records(run: Path) -> Sweep | None:
    """Return a plan of what a journal holds, with the usual effort and the usual baseline; None without records."""
    entries = journal.scan(run).entries
    if not entries:
        return None
    names = dict.fromkeys(entry.case.implementation for entry in entries)
    own = tuple(name for name in names if name != CONTROL)
    baseline = Sweep.baseline if Sweep.baseline in own else own[0]
    effort = Effort(processes=1 + max(entry.process for entry in entries))
    points = tuple(dict.fromkeys(entry.case.point for entry in entries))
    return Sweep(run.resolve().name, points, own, baseline, effort, control=CONTROL in names)


def effort_of(run: Path) -> Effort | None:
    """Return the effort of a run, None if it isn't known; raises WrongRequest as `load` does."""
    planned = load(run) if (run / PLAN).exists() else None
    return planned.effort if planned else None


def continued(
    asked: Sweep,
    own: Sweep | None,
    folder: Path,
    *,
    extend: bool = False,
    way_out: str = "use another folder",
) -> Sweep:
    """Return the sweep that a run goes on with: its own, or with `extend` the union of its own and the one asked for.

    A run that began without a control stays without one.
    Raises WrongRequest, with both values, if they differ without `extend`, or if their baselines differ.
    """
    if own is None:
        return asked
    if extend and (asked.shard or own.shard):
        raise WrongRequest("--extend and --shard don't go together: a longer sweep has other shards")
    if extend:
        return _union(own, asked, folder)
    if differences := list(_differences(own, asked)):
        facts = "; ".join(differences)
        raise WrongRequest(f"{folder} holds another sweep, here against what is asked for: {facts}; {way_out}")
    wishes = {name: getattr(asked.effort, name) for name in WISHES}
    return dataclasses.replace(own, effort=dataclasses.replace(own.effort, **wishes))


def wanted(asked: Request) -> Sweep:
    """Return the sweep that is asked for, the run folder's own if it holds one and the request fits it.

    Raises WrongRequest if it asks for another sweep without `extend`, or for an extension of no run.
    """
    own = load(asked.run) if asked.run else None
    if own is None or asked.run is None:
        if asked.extend:
            raise WrongRequest(f"--extend adds to a run, and {asked.run or 'without --run DIR there'} is none")
        return load_sweep(asked)
    sweep = load_sweep(asked) if asked.is_named else _changed(own, asked)
    return continued(sweep, own, asked.run, extend=asked.extend, way_out=WAYS_OUT)


def _changed(own: Sweep, asked: Request) -> Sweep:
    """Return a run's own sweep, changed as a request says.

    Columns without a named sweep are those of the default sweep, as for a new run.
    """
    rebased = dataclasses.replace(own, baseline=asked.baseline or own.baseline)
    changed = altered(rebased, asked.implementations, asked.effort, asked.path)
    changed = dataclasses.replace(changed, control=own.control and asked.control is not False)
    if asked.overrides:
        sweep = load_sweep(asked)
        return dataclasses.replace(changed, points=sweep.points, shard=sweep.shard, whole=sweep.whole)
    return changed.sharded(asked.shard) if asked.shard else changed


def _union(own: Sweep, asked: Sweep, folder: Path) -> Sweep:
    if own.baseline != asked.baseline:
        raise WrongRequest(
            f"{folder} has the baseline {own.baseline}, asked for is {asked.baseline}: "
            "ratios to both don't go into one table; use another folder"
        )
    effort = dataclasses.replace(asked.effort, processes=max(own.effort.processes, asked.effort.processes))
    return dataclasses.replace(
        own,
        points=tuple(dict.fromkeys((*own.points, *asked.points))),
        implementations=tuple(dict.fromkeys((*own.implementations, *asked.implementations))),
        effort=effort,
    )


def _differences(own: Sweep, asked: Sweep) -> Iterator[str]:
    """Yield the differences of two sweeps, the run's own value first; a different name alone is none."""
    facts = {
        "baseline": [own.baseline, asked.baseline],
        "shard": [str(own.shard or "none"), str(asked.shard or "none")],
        "points": [_counted(own.points, asked.points), _counted(asked.points, own.points)],
        **{key: [getattr(own.effort, key), getattr(asked.effort, key)] for key in EFFORT_KEYS if key not in WISHES},
    }
    if own.control and not asked.control:
        facts["control"] = [True, False]
    if {*own.implementations} != {*asked.implementations}:
        facts["implementations"] = [", ".join(own.implementations), ", ".join(asked.implementations)]
    differing = {name: values for name, values in facts.items() if values[0] != values[1]}
    if differing and own.name != asked.name:
        yield f"sweep: {own.name} against {asked.name}"
    yield from (f"{name}: {here} against {there}" for name, (here, there) in differing.items())


def _counted(points: Collection[Point], others: Collection[Point]) -> str:
    """Return how many points there are, and one that the others lack."""
    lacking = {*points} - {*others}
    lone = next((point.name for point in points if point in lacking), "")
    return f"{len(points)}{f' with {lone}' if lone else ''}"


def _sweep(plan: _Plan) -> Sweep:
    """Return the sweep of a plan; points with a checksum are as they were written, and need no other check."""
    if not plan.points:
        raise WrongRequest("the plan holds no points")
    points = tuple(Point(**vars(each)) for each in plan.points)  # msgspec sets only what the file has
    points = tuple(map(_checked, points)) if plan.points_crc32 is None else points
    sweep = Sweep(plan.name, points, plan.implementations, plan.baseline, control=plan.control)
    effort = {key: value for key, value in vars(Effort(**vars(plan.effort))).items() if value is not None}
    if plan.implementations == (BEFORE, AFTER):  # the sides of a duel
        return dataclasses.replace(sweep, effort=read_effort(effort))
    sweep = altered(sweep, sweep.implementations, effort)
    return sweep.sharded(parse_shard(plan.shard)) if plan.shard else sweep


def _checked(point: Point) -> Point:
    """Return a point that keeps the rules of a grid; raises WrongRequest for another one."""
    (same,) = expand({name: value for name, value in vars(point).items() if value is not None})
    return same
