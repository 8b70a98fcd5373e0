"""Sweep files: a named set of points and implementations."""

import dataclasses
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.plan import names
from bench.plan.case import AS_IS, CONTROL, Case, Point
from bench.plan.columns import Setting, ValueKind, declared_by, setting
from bench.plan.device import default_sweep
from bench.plan.errors import WrongRequest, all_of, refuse, unknown
from bench.plan.grid import DEFAULTS, MODEL_COLUMNS, Shard, Values, expand, expand_models, layers_of, mistakes_in, part
from bench.plan.invocation import short
from impls.catalogue import name_of

SHIPPED = Path(__file__).parent / "sweeps"

BASE_S, POINT_S = 20.0, 20.0
"""The default seconds of a race: a fixed part, and a part per point."""

PROCESS_S = 0.5
"""About the seconds of a process of a case beside its rounds, as on two cores of a CPU."""


@dataclass(frozen=True)
class Effort:
    """How precisely a point is measured, and how long that may take.

    `budget_s` is the time for a point's rounds over `processes`, `timeout_s` the longest time without a sign of life
    from a case. Without a `race` that is all. A race begins with this as its base. Then it measures the possibly
    fastest implementations again, until the named one is within the share `bound` of the fastest or the run has taken
    `within_s` (None: BASE_S, and POINT_S per point).
    `oversubscribe` allows more threads than there are cores.
    """

    processes: int = setting(
        3, "worker processes that measure each implementation; a race may start more of them", example="K"
    )
    budget_s: float = setting(
        12.0, "time for the rounds of a point over these processes", kind=ValueKind.SECONDS, example="12s"
    )
    race: bool = setting(
        False, "give all implementations equal time, so that all rows are equally precise",
        switch="--no-race",
    )  # fmt: skip
    bound: float = setting(
        0.02, "end a race once the implementation named is within this bound", kind=ValueKind.SHARE, example="2%"
    )
    within_s: float | None = setting(
        None, "end a race after this time", kind=ValueKind.SECONDS, example="4m", switch="--within"
    )
    timeout_s: float = setting(
        300.0, "give up a case after this long without progress", kind=ValueKind.SECONDS, example="5m"
    )
    oversubscribe: bool = setting(False, "allow more threads than cores")

    def seconds(self, points: int) -> float:
        """Return the longest time in seconds of a race over this many points, if its base doesn't take longer."""
        return BASE_S + POINT_S * points if self.within_s is None else self.within_s


@dataclass(frozen=True)
class Sweep:
    """A named set of points, and the implementations to measure at each.

    With `control` the baseline is measured a second time at each point, under the name CONTROL.
    If it is a `shard`, `whole` has the points of all shards. Points that differ in the column `across` alone share
    rounds.
    """

    name: str
    points: tuple[Point, ...]
    implementations: tuple[str, ...]
    baseline: str = "eager"
    effort: Effort = field(default_factory=Effort)
    control: bool = False
    shard: Shard | None = None
    whole: tuple[Point, ...] = ()
    across: str = ""

    def sharded(self, shard: Shard | None) -> "Sweep":
        """Return a shard of the whole sweep, or the whole for None; raises WrongRequest if there are too few points."""
        points = self.whole or self.points
        if shard is None:
            return dataclasses.replace(self, points=points, shard=None, whole=())
        return dataclasses.replace(self, points=part(points, shard), shard=shard, whole=points)

    @property
    def measured(self) -> tuple[str, ...]:
        """The implementations, and CONTROL if the sweep has a control and measures its baseline."""
        has_control = self.control and self.baseline in self.implementations
        return (*self.implementations, CONTROL) if has_control else self.implementations

    def computed_by(self, name: str) -> str:
        """Return the implementation that is measured under a name of `measured`: the baseline for CONTROL."""
        return self.baseline if name == CONTROL else name

    def cases(self) -> Iterator[Case]:
        """Yield every planned case of an implementation, point by point."""
        for point in self.points:
            for implementation in self.implementations:
                yield Case(point, implementation)


SETTINGS: Mapping[str, Setting] = declared_by(Effort)
"""The settings of an effort by name."""

EFFORT_KEYS = tuple(SETTINGS)

IF_CPU = "if_cpu"
"""The key of a grid with a list of CPU flags: a CPU without any of them skips the grid."""

CUSTOM = "custom"
"""The name of a sweep that is a product of options."""

SWEEP_KEYS = ("implementations", "baseline", "control", "defaults", "grid", *EFFORT_KEYS)


def shipped_names() -> list[str]:
    """Return the names of the sweeps that come with the suite."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


Shown = Mapping[str, Values]
"""The columns that only a call of the module shows, by module name."""


@dataclass(frozen=True)
class Request:
    """A user's request: a sweep (a shipped name or a TOML file), the values that replace its own, and the run.

    The default sweep is the one of the run in the folder, or the default for the devices' kind.
    `threads` are used if the file gives none; `cpu` has the CPU's flags, for grids with IF_CPU. `overrides`,
    `implementations`, `baseline`, `control` and `effort` replace the file's values. An override, which may name a
    `model`, replaces its column in every grid.
    With `product` the overrides are the only grid, and the file's defaults fill in the other columns.
    `path` has the folders that must contain the modules of a user's implementations; None skips this check.
    `run` is the run's folder; a run in it is resumed, or added to with `extend`.
    `look` returns the columns that the named modules show; `say` gets a line for each grid that is left out.
    """

    sweep: str = ""
    threads: int = 1
    cpu: Collection[str] = ()
    overrides: Values = field(default_factory=dict)
    implementations: Sequence[str] = ()
    baseline: str = ""
    control: bool | None = None
    effort: Mapping[str, Any] = field(default_factory=dict)
    product: bool = False
    path: Sequence[str] | None = None
    shard: Shard | None = None
    run: Path | None = None
    extend: bool = False
    look: Callable[[Sequence[str]], Shown] = lambda _layers: {}
    say: Callable[[str], object] = lambda _line: None


def load_sweep(asked: Request | str) -> Sweep:
    """Return the sweep that a request, a name or a file asks for, regardless of the run folder's contents.

    The baseline is always among the implementations, because the ratios need it.
    The sweep has a control unless the file or the request switches it off.
    Raises WrongRequest with a line for each mistake: a user's file, the key, the value, and the rule.
    """
    asked = Request(asked) if isinstance(asked, str) else asked
    file = _path(asked.sweep or default_sweep(asked.overrides.get("device", ())))
    try:
        document = _document(file)
        baseline, names_in_file = _baseline(document, asked, is_shipped=file.parent == SHIPPED)
        implementations, has_control, (grids, usual), effort = all_of(
            lambda: _implementations(asked.implementations or names_in_file, baseline, asked.path),
            lambda: _control(document.get("control", True) if asked.control is None else asked.control),
            lambda: _grids(document, asked),
            lambda: effort_of(_raced({key: document[key] for key in EFFORT_KEYS if key in document}, asked.effort)),
        )
        points = _points(grids, usual, asked)
    except WrongRequest as error:
        prefix = "" if file.parent == SHIPPED else f"{file.name}: "
        raise WrongRequest("\n".join(prefix + line for line in str(error).splitlines())) from None
    name = CUSTOM if asked.product else file.stem
    sweep = Sweep(name, points, implementations, baseline, effort, has_control)
    return sweep.sharded(asked.shard) if asked.shard else sweep


def altered(
    sweep: Sweep, implementations: Sequence[str], effort: Mapping[str, Any], path: Sequence[str] | None = None
) -> Sweep:
    """Return a sweep with other implementations, if any are given, and other values of its effort.

    `path` has the folders that must contain the modules of a user's implementations; None skips this check.
    Raises WrongRequest with the key, the value and the rule.
    """
    names.check_layers((point.layer for point in sweep.points), path)
    return dataclasses.replace(
        sweep,
        implementations=_implementations(tuple(implementations) or sweep.implementations, sweep.baseline, path),
        effort=effort_of(
            {key: value for key, value in _raced(vars(sweep.effort), effort).items() if value is not None}
        ),
    )


def _path(name_or_file: str) -> Path:
    if name_or_file in shipped_names():
        return SHIPPED / f"{name_or_file}.toml"
    path = Path(name_or_file)
    if path.is_file():
        return path
    if path.suffix == ".toml":
        raise WrongRequest(f"sweep file {name_or_file} does not exist")
    raise unknown("sweep", name_or_file, [*shipped_names(), "your own file, such as mine.toml"])


def _document(path: Path) -> dict[str, Any]:
    """Return the contents of a file, with grids and defaults as tables; raises WrongRequest for any other form."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise WrongRequest(f"must be valid TOML: {error}") from None
    except OSError as error:
        raise WrongRequest(f"can't be read: {error.strerror}") from None
    for key in document:
        if key not in SWEEP_KEYS:
            raise unknown("key", key, SWEEP_KEYS)
    grids, defaults = document.get("grid", []), document.setdefault("defaults", {})
    if not isinstance(grids, list) or not all(isinstance(grid, dict) for grid in grids):
        raise WrongRequest("grid must be written as [[grid]], one table for each product")
    if not isinstance(defaults, dict):
        raise WrongRequest("defaults must be written as a table, [defaults]")
    if not grids:
        raise WrongRequest("the sweep is empty; it must have at least one [[grid]]")
    return document


def _baseline(document: Mapping[str, Any], asked: Request, *, is_shipped: bool) -> tuple[Any, Any]:
    """Return the baseline and the implementations of a file.

    For modules from elsewhere the baseline is AS_IS unless the user's file names another one, and a shipped sweep
    keeps only the implementations that can replace a core.
    """
    tables = [asked.overrides] if "layer" in asked.overrides else [document["defaults"], *document["grid"]]
    has_modules = any(":" in str(name) for each in tables for name in layers_of(each))
    given = document.get("implementations")
    if not has_modules or ("baseline" in document and not is_shipped):
        return asked.baseline or document.get("baseline", Sweep.baseline), given
    if is_shipped and given is not None:
        given = [AS_IS, *(name for name in given if not name_of(name).entry.layers), "compiled"]
    return asked.baseline or AS_IS, given


def _points(grids: Sequence[Values], usual: Values, asked: Request) -> tuple[Point, ...]:
    """Return the points of grids, each once; a layer that a product's columns don't fit is left out."""
    names.check_layers((grid["layer"] for grid in grids), asked.path)
    layers = dict.fromkeys(grid["layer"] for grid in grids if name_of(grid["layer"]).shapes_itself)
    shown = asked.look([*layers]) if layers else {}
    points, mistakes = dict[Point, None](), list[str]()
    for grid in grids:
        try:
            points |= dict.fromkeys(expand(grid, usual, shown.get(grid["layer"])))
        except WrongRequest as error:
            mistakes.append(str(error))
    if not (asked.product and points):
        refuse(mistakes)
    for line in mistakes:
        asked.say(f"left out: {line}")
    return tuple(points)


def _grids(document: Mapping[str, Any], asked: Request) -> tuple[list[Values], Values]:
    """Return the grids of a file with the request's columns in place of their own, and the default values.

    A product's grid has only the request's columns. Each grid has one model and one layer.
    """
    overrides = expand_models(dict(asked.overrides))
    replaced = {"model", *MODEL_COLUMNS} if "model" in asked.overrides else {"model"}
    defaults = {key: value for key, value in document["defaults"].items() if key not in replaced}
    usual = {**DEFAULTS, "threads": asked.threads, **defaults}
    model = {key: value for key, value in document["defaults"].items() if key == "model"}
    grids = [{}] if asked.product else _for_cpu(document["grid"], asked.cpu)
    own = [each for grid in grids for each in expand_models({**({} if asked.product else model), **grid})]
    whole = [
        {**{key: value for key, value in grid.items() if key not in replaced}, **each}
        for grid in own
        for each in overrides
    ]
    refuse(line for grid in whole for line in mistakes_in({**usual, **grid}))
    return [{**grid, "layer": layer} for grid in whole for layer in layers_of({**usual, **grid})], usual


def _for_cpu(grids: Sequence[Values], cpu: Collection[str]) -> list[Values]:
    """Return the grids that apply to this CPU: it must have one of the flags in IF_CPU."""
    for grid in grids:
        if not isinstance(flags := grid.get(IF_CPU, []), list):
            raise WrongRequest(f"{IF_CPU} = {flags!r} must be a list of flags as in /proc/cpuinfo")
    own = [grid for grid in grids if IF_CPU not in grid or not {*grid[IF_CPU]}.isdisjoint(cpu)]
    return [{key: value for key, value in grid.items() if key != IF_CPU} for grid in own]


def _implementations(given: object, baseline: object, path: Sequence[str] | None = None) -> tuple[str, ...]:
    if given is None:
        raise WrongRequest(f"implementations is missing; expected a list of names in `{short()} list`")
    if not isinstance(given, list | tuple) or not given:
        raise WrongRequest(f"implementations = {given!r} must be a list of at least one name")
    missing = [] if baseline in given else [baseline]
    refuse(names.mistakes([*given, *missing], path))
    return (*missing, *given)


def _control(value: object) -> bool:
    if not isinstance(value, bool):
        raise WrongRequest(f"control = {value!r} must be true or false")
    return value


def _raced(of_file: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of an effort, with a race unless they switch it off."""
    values = {**of_file, **given}
    if given.get("race") is False and "within_s" not in given:
        values.pop("within_s", None)
    return {"race": True, **values}


def effort_of(values: Mapping[str, Any]) -> Effort:
    """Return the effort with these values; raises WrongRequest for invalid ones."""
    refuse(SETTINGS[key].mistake(value) for key, value in values.items())
    effort = Effort(**values)
    if effort.within_s is not None and not effort.race:
        raise WrongRequest("within_s needs a race; without one budget_s sets the time for each point")
    return effort
