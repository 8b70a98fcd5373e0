"""The plan of a run, as plan.json: the points, the implementations, the baseline and the effort at its beginning.

A resumed run goes on with its own plan, not with the one that is asked for later.
"""

import dataclasses
import json
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.plan.case import COLUMNS, CONTROL, Point
from bench.plan.columns import REQUIRED
from bench.plan.errors import WrongRequest
from bench.plan.grid import expand
from bench.plan.names import is_implementation
from bench.plan.shard import parse
from bench.plan.sweep import EFFORT_KEYS, Effort, Sweep, altered
from bench.store import atomic, environment, journal
from bench.store.record import SCHEMA_VERSION, check_schema

PLAN = "plan.json"

WISHES = ("bound", "within_s")
"""The values of an effort that a run may go on with in place of its own: how sure its answers should be, and when."""

POINTS = ',\n  "points": [\n'
"""The text before the points."""


@dataclass(frozen=True)
class Stored:
    """The plan of a run folder.

    A folder of an older suite has no plan.json: its plan is rebuilt from its records. Then `is_whole` is false, because
    planned points without a record are unknown, and `knows_effort` is false if the effort is unknown too.
    """

    sweep: Sweep
    is_whole: bool = True
    knows_effort: bool = True


def save(sweep: Sweep, run: Path) -> None:
    """Write plan.json of a run, a line for each point; raises OSError if it can't be written."""
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
    text = json.dumps({**head, "points_crc32": zlib.crc32(listed.encode())}, indent=2).removesuffix("\n}")
    atomic.replace(run / PLAN, f"{text}{POINTS}{listed}")


def load(run: Path) -> Stored | None:
    """Return the plan of a run folder, None if nothing was planned there.

    Raises WrongRequest for a broken or newer file, and for a plan that this suite can't carry out.
    """
    path = run / PLAN
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text)
        check_schema(content["schema_version"])
        listed = text.partition(POINTS)[2]
        return Stored(_sweep(content, is_checked=content.get("points_crc32") == zlib.crc32(listed.encode())))
    except (FileNotFoundError, NotADirectoryError):
        return _rebuilt(run)
    except WrongRequest as error:
        raise WrongRequest(f"{path}: {error}") from None
    except OSError as error:
        raise WrongRequest(f"{path} can't be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise WrongRequest(f"{path} is no plan of attention-bench") from None


def effort_of(run: Path) -> Effort | None:
    """Return the effort of a run, None if it isn't known; raises WrongRequest as `load` does."""
    if (run / PLAN).exists() and (stored := load(run)):
        return stored.sweep.effort
    known = environment.load(run)
    values = known.context.get("effort") if known else None
    if not isinstance(values, dict):
        return None
    return Effort(**_known(values))


def continued(
    asked: Sweep,
    stored: Stored | None,
    folder: Path,
    *,
    extend: bool = False,
    way_out: str = "use another folder",
) -> Sweep:
    """Return the sweep that a run goes on with: its own, or with `extend` the union of its own and the one asked for.

    A run that began without a control stays without one.
    Raises WrongRequest, with both values, if they differ without `extend`, or if their baselines differ.
    """
    if stored is None:
        return asked
    if extend and (asked.shard or stored.sweep.shard):
        raise WrongRequest("--extend and --shard don't go together: a longer sweep has other shards")
    if extend:
        return _union(stored.sweep, asked, folder)
    if not stored.is_whole:  # only the measured cases are known
        union = _union(stored.sweep, asked, folder)
        asks_for_all = {*union.points} == {*asked.points} and {*union.implementations} == {*asked.implementations}
        if asks_for_all and (asked.effort == stored.sweep.effort or not stored.knows_effort):
            return dataclasses.replace(asked, control=stored.sweep.control)
    if differences := list(_differences(stored.sweep, asked)):
        facts = "; ".join(differences)
        raise WrongRequest(f"{folder} holds another sweep, here against what is asked for: {facts}; {way_out}")
    wishes = {name: getattr(asked.effort, name) for name in WISHES}
    return dataclasses.replace(stored.sweep, effort=dataclasses.replace(stored.sweep.effort, **wishes))


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
    known = {*others}
    lone = next((point.name for point in points if point not in known), "")
    return f"{len(points)}{f' with {lone}' if lone else ''}"


def _sweep(content: Mapping[str, Any], *, is_checked: bool) -> Sweep:
    """Return the sweep of a plan; points that were checked when they were written are taken as they are."""
    newer = {name: column.absent for name, column in COLUMNS.items() if column.absent is not REQUIRED}
    every = dict.fromkeys(COLUMNS)
    if is_checked:
        points = tuple(Point(**{**every, **newer, **columns}) for columns in content["points"])
    else:
        points = tuple(_point(columns) for columns in content["points"])
    names, has_control = tuple(content["implementations"]), content.get("control", False)
    sweep = Sweep(str(content["name"]), points, names, content["baseline"], control=has_control)
    if not points:
        raise WrongRequest("the plan holds no points")
    sweep = altered(sweep, sweep.implementations, _known(content["effort"]))
    return sweep.sharded(parse(content["shard"])) if "shard" in content else sweep


def _known(effort: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of an effort that this suite knows; before there were races, within_s meant something else."""
    keys = [key for key in EFFORT_KEYS if key in effort and (key not in WISHES or "race" in effort)]
    return {key: effort[key] for key in keys}


def _point(columns: Mapping[str, Any]) -> Point:
    """Return a point that keeps the rules of a grid; a column that is newer than the plan has its `absent` value."""
    newer = {name: column.absent for name, column in COLUMNS.items() if column.absent not in (REQUIRED, None)}
    (point,) = expand({**newer, **columns})
    return point


def _rebuilt(run: Path) -> Stored | None:
    """Return the plan of a folder that an older suite filled, from its records and its environment."""
    records = journal.read(run)
    if not records:
        return None
    known = environment.load(run)
    context = known.context if known else {}
    points = tuple(dict.fromkeys(record.case.point for record in records))
    measured = dict.fromkeys(record.case.implementation for record in records)
    implementations = tuple(name for name in measured if is_implementation(name))
    if not implementations:
        foreign = ", ".join(measured)
        raise WrongRequest(f"{run} holds implementations that this suite doesn't have: {foreign}; use another folder")
    baseline = context.get("baseline", Sweep.baseline if Sweep.baseline in implementations else implementations[0])
    name = context.get("sweep", run.resolve().name)
    effort = effort_of(run)
    usual = Effort(processes=1 + max(record.process for record in records))
    sweep = Sweep(name, points, implementations, baseline, effort or usual, control=CONTROL in measured)
    return Stored(sweep, is_whole=False, knows_effort=effort is not None)
