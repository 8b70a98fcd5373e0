"""The plan of a run, a line of its journal: points, implementations, baseline and effort.

A resumed run keeps its own plan, whatever is requested later.
"""

import dataclasses
import json
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from bench.plan.case import Point
from bench.plan.errors import WrongRequest
from bench.plan.grid import parse_shard
from bench.plan.sweep import EFFORT_KEYS, Effort, Request, Sweep, altered, load_sweep
from bench.store import journal
from bench.store.journal import Contents
from bench.store.record import SCHEMA_VERSION
from bench.store.typed import decode

WISHES = ("bound", "within_s")
"""The values of an effort that a resumed run takes from the new request: the bound and the time."""

WAYS_OUT = "use a new folder, or --extend to add to this one"


class _Plan(msgspec.Struct):
    name: str
    baseline: str
    implementations: tuple[str, ...]
    effort: Effort
    points: tuple[Point, ...]
    control: bool = False
    shard: str = ""
    across: str = ""


class _Line(msgspec.Struct):
    plan: _Plan


def encode(sweep: Sweep) -> bytes:
    """Return the line of a plan without a line end."""
    plan = {
        "name": sweep.name,
        "baseline": sweep.baseline,
        "implementations": [*sweep.implementations],
        "control": sweep.control,
        "effort": dataclasses.asdict(sweep.effort),
        **({"shard": str(sweep.shard)} if sweep.shard else {}),
        **({"across": sweep.across} if sweep.across else {}),
        "points": [
            {name: value for name, value in vars(point).items() if value is not None}
            for point in sweep.whole or sweep.points
        ],
    }
    return json.dumps({"schema_version": SCHEMA_VERSION, "plan": plan}, separators=(",", ":")).encode()


def keep(sweep: Sweep, contents: Contents) -> None:
    """Add a plan to a journal unless it is there already; raises CannotWrite if it can't be written."""
    if not contents.plan or of(contents) != sweep:
        line = encode(sweep)
        contents.write([line])
        contents.plan = line


def load(run: Path) -> Sweep | None:
    """Return the plan in a run folder, None if there is none; raises WrongRequest for a broken one."""
    return of(journal.scan(run))


def of(contents: Contents) -> Sweep | None:
    """Return the plan in a journal, None if there is none; raises WrongRequest for a broken one."""
    try:
        return _sweep(decode(_Line, contents.plan).plan) if contents.plan else None
    except ValueError as error:
        raise WrongRequest(f"{contents.path} has an invalid plan ({error})") from None


def continued(
    asked: Sweep,
    own: Sweep | None,
    folder: Path,
    *,
    extend: bool = False,
    way_out: str = "use another folder",
) -> Sweep:
    """Return the sweep of a resumed run: its own, or with `extend` the union with the requested one.

    A run that began without a control stays without one.
    Raises WrongRequest, with both values, if the sweeps differ without `extend`, or if their baselines differ.
    """
    if own is None:
        return asked
    if extend and (asked.shard or own.shard):
        raise WrongRequest("--extend can't be used with --shard, because a longer sweep has other shards")
    if extend:
        return _union(own, asked, folder)
    if differences := list(_differences(own, asked)):
        facts = "; ".join(differences)
        raise WrongRequest(f"{folder} has a different sweep (own against requested): {facts}; {way_out}")
    wishes = {name: getattr(asked.effort, name) for name in WISHES}
    return dataclasses.replace(own, effort=dataclasses.replace(own.effort, **wishes))


def wanted(asked: Request) -> Sweep:
    """Return the sweep to measure: the requested one, or the run folder's own if it has one that the request fits.

    Raises WrongRequest for another sweep without `extend`, or if the request needs a run and there is none.
    """
    own = load(asked.run) if asked.run else None
    if own is None or asked.run is None:
        if asked.extend:
            missing = f"{asked.run} is not a run" if asked.run else "name it with --run DIR"
            raise WrongRequest(f"--extend needs a run to add to; {missing}")
        if asked.run and asked.run.exists() and not (asked.sweep or asked.implementations or asked.overrides):
            raise WrongRequest(f"{asked.run} has no run to resume; say what to measure, such as --sweep quick")
        return load_sweep(asked)
    sweep = load_sweep(asked) if asked.sweep else _changed(own, asked)
    return continued(sweep, own, asked.run, extend=asked.extend, way_out=WAYS_OUT)


def _changed(own: Sweep, asked: Request) -> Sweep:
    """Return a run's own sweep with the changes of a request.

    Columns in a request without a sweep are applied to the default sweep, as for a new run.
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
            f"{folder} has the baseline {own.baseline}, but {asked.baseline} is requested; use another folder"
        )
    effort = dataclasses.replace(asked.effort, processes=max(own.effort.processes, asked.effort.processes))
    return dataclasses.replace(
        own,
        points=tuple(dict.fromkeys((*own.points, *asked.points))),
        implementations=tuple(dict.fromkeys((*own.implementations, *asked.implementations))),
        effort=effort,
    )


def _differences(own: Sweep, asked: Sweep) -> Iterator[str]:
    """Yield the differences of two sweeps, the run's own value first; a different name alone doesn't count."""
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
    """Return the number of points, and the name of one that the others lack."""
    lacking = {*points} - {*others}
    lone = next((point.name for point in points if point in lacking), "")
    return f"{len(points)}{f' with {lone}' if lone else ''}"


def _sweep(plan: _Plan) -> Sweep:
    """Return the sweep of a plan; it may have unknown names, because a run can be read without its implementations."""
    points = tuple(Point(**vars(each)) for each in plan.points)  # msgspec sets only the line's columns
    effort = Effort(**vars(plan.effort))
    sweep = Sweep(
        plan.name, points, plan.implementations, plan.baseline, effort, control=plan.control, across=plan.across
    )
    return sweep.sharded(parse_shard(plan.shard)) if plan.shard else sweep
