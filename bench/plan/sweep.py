"""Sweep files: a named set of points and implementations."""

import dataclasses
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.plan.case import Case, Point
from bench.plan.errors import WrongRequest, unknown
from bench.plan.grid import DEFAULTS, Values, expand
from bench.plan.models import spelled_out
from bench.plan.names import IMPLEMENTATIONS, is_implementation
from bench.plan.published import Published
from bench.plan.published import read as read_published

SHIPPED = Path(__file__).parent / "sweeps"


@dataclass(frozen=True)
class Effort:
    """How much is spent on a point.

    `target` is the half-width of the 95 % interval of every ratio at which a point is done,
    `budget_s` the time for a point's rounds over all processes, `timeout_s` the longest silence of one case.
    A sweep that takes less than `within_s` with these budgets spends the rest on more rounds; None asks for no more.
    `check_memory` asks the operating system for the peak memory too, in a process of its own.
    """

    processes: int = 3
    target: float = 0.02
    budget_s: float = 12.0
    within_s: float | None = None
    timeout_s: float = 300.0
    check_memory: bool = False


@dataclass(frozen=True)
class Sweep:
    """A named set of points and the implementations that are measured at each, with what others published of them."""

    name: str
    points: tuple[Point, ...]
    implementations: tuple[str, ...]
    baseline: str = "eager"
    effort: Effort = field(default_factory=Effort)
    published: tuple[Published, ...] = ()

    def cases(self) -> Iterator[Case]:
        """Yield every planned case, point by point."""
        for point in self.points:
            for implementation in self.implementations:
                yield Case(point, implementation)


EFFORT_KEYS = tuple(f.name for f in dataclasses.fields(Effort))
SWEEP_KEYS = ("implementations", "baseline", "defaults", "grid", "published", *EFFORT_KEYS)


def shipped_names() -> list[str]:
    """Return the names of the sweeps that come with the suite."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def load_sweep(
    name_or_file: str,
    *,
    threads: int = 1,
    implementations: Sequence[str] = (),
    overrides: Values | None = None,
    effort: Mapping[str, Any] | None = None,
) -> Sweep:
    """Return the sweep of a shipped name or of a TOML file.

    `threads` holds where the file says nothing; the rest, where given, replaces what the file says.
    The baseline is always among the implementations, because the ratios need it.
    Raises WrongRequest with the file, the key, the value and what was expected.
    """
    path = _path(name_or_file)
    try:
        return _sweep(path, threads, tuple(implementations), overrides or {}, effort or {})
    except WrongRequest as error:
        raise WrongRequest(f"{path.name}: {error}") from None


def altered(sweep: Sweep, implementations: Sequence[str], effort: Mapping[str, Any]) -> Sweep:
    """Return a sweep with other implementations, if any are given, and with the effort that is given.

    Raises WrongRequest with the key, the value and what was expected.
    """
    return dataclasses.replace(
        sweep,
        implementations=_implementations(tuple(implementations) or sweep.implementations, sweep.baseline),
        effort=_effort({key: value for key, value in {**vars(sweep.effort), **effort}.items() if value is not None}),
    )


def _path(name_or_file: str) -> Path:
    if name_or_file in shipped_names():
        return SHIPPED / f"{name_or_file}.toml"
    path = Path(name_or_file)
    if path.is_file():
        return path
    if path.suffix == ".toml":
        raise WrongRequest(f"sweep file {name_or_file} does not exist")
    raise WrongRequest(f"unknown sweep {name_or_file!r}; expected one of {', '.join(shipped_names())}, or a .toml file")


def _sweep(
    path: Path, threads: int, implementations: tuple[str, ...], overrides: Values, effort: Mapping[str, Any]
) -> Sweep:
    document = _read(path)
    for key in document:
        if key not in SWEEP_KEYS:
            raise unknown("key", key, SWEEP_KEYS)
    baseline = document.get("baseline", Sweep.baseline)
    return Sweep(
        name=path.stem,
        points=_points(document, {"threads": threads}, overrides),
        implementations=_implementations(implementations or document.get("implementations"), baseline),
        baseline=baseline,
        effort=_effort({**{key: document[key] for key in EFFORT_KEYS if key in document}, **effort}),
        published=read_published(document.get("published", [])),
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise WrongRequest(f"is not TOML: {error}") from None
    except OSError as error:
        raise WrongRequest(f"can't be read: {error.strerror}") from None


def _points(document: dict[str, Any], machine: Values, overrides: Values) -> tuple[Point, ...]:
    grids = document.get("grid", [])
    defaults = document.get("defaults", {})
    if not isinstance(grids, list) or not all(isinstance(grid, dict) for grid in grids):
        raise WrongRequest("grid must be written as [[grid]], one table for each product")
    if not isinstance(defaults, dict):
        raise WrongRequest("defaults must be written as a table, [defaults]")
    if not grids:
        raise WrongRequest("the sweep is empty: it must hold at least one [[grid]]")
    spelled = [each for grid in grids for each in _spelled_out(defaults, grid)]
    points = [point for grid in spelled for point in expand({**DEFAULTS, **machine, **grid, **overrides})]
    return tuple(dict.fromkeys(points))


def _spelled_out(defaults: dict[str, Any], grid: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a grid with the defaults that it leaves, once for each model that it, or else the defaults, name."""
    if "model" in defaults and "model" not in grid:
        grid = {"model": defaults["model"], **grid}
    usual = {key: value for key, value in defaults.items() if key != "model"}
    return [{**usual, **each} for each in spelled_out(grid)]


def _implementations(names: object, baseline: object) -> tuple[str, ...]:
    if names is None:
        raise WrongRequest(f"implementations is missing; expected a list from {', '.join(IMPLEMENTATIONS)}")
    if not isinstance(names, list | tuple) or not names:
        raise WrongRequest(f"implementations = {names!r} must be a list of at least one name")
    for name in (*names, baseline):
        if not isinstance(name, str) or not is_implementation(name):
            expected = (*IMPLEMENTATIONS, "module:attribute")
            raise unknown("implementation", name, expected)
    return tuple(dict.fromkeys([*([] if baseline in names else [baseline]), *names]))


def _effort(values: Mapping[str, Any]) -> Effort:
    for key, value in values.items():
        if key == "check_memory":
            if not isinstance(value, bool):
                raise WrongRequest(f"{key} = {value!r} must be true or false")
            continue
        whole = key == "processes"
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not 0 < value < math.inf:
            rule = "a whole number of at least 1" if whole else "a number above 0"
            raise WrongRequest(f"{key} = {value!r} must be {rule}")
    return Effort(**values)
