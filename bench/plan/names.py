"""The names of layers and implementations, and the checks of a user's own, `module:attribute`, without an import."""

import contextlib
import importlib.util
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from bench.plan import layers
from bench.plan.case import CONTROL, Point
from bench.plan.controls import CONTROLLING
from bench.plan.errors import refuse, suggestion, unknown_names
from bench.plan.invocation import short
from impls import catalogue
from impls.catalogue import SOURCES, parse

LAYERS = {name: layer.meaning for name, layer in layers.LAYERS.items()}

PRINTED = f"those of `{short()} list`"
"""Where all names stand, in place of a long list of them."""

IMPLEMENTATIONS = {name: entry.meaning for name, entry in catalogue.IMPLEMENTATIONS.items()}

USUAL_ATTRIBUTES = {"implementation": "attend", "layer": "MyAttention", "model": "make"}
"""The attributes that an error line proposes if a name has none."""


def is_implementation(name: str) -> bool:
    """Return whether a name may be an implementation; `module:attribute` is checked later, at its import."""
    try:
        base = parse(name).base
    except ValueError:
        return False
    module, colon, attribute = base.partition(":")
    return bool(module and attribute) if colon else base in known_names()


@cache
def check_texts(implementation: str, layer: str, *others: str) -> None:
    """Raise ValueError for texts of a case that no request can have: the grammar of names, and control characters."""
    for name in filter(None, (implementation, layer)):
        parse(name)
    for text in (implementation, layer, *others):
        if CONTROLLING.search(text):
            raise ValueError(f"the texts of a case must hold no control characters, got {text!r}")


def known_names() -> tuple[str, ...]:
    """Return the names of implementations: the suite's own, and those of installed packages, none of them CONTROL."""
    installed = (entry.name for entry in entry_points(group=catalogue.ENTRY_POINT_GROUP))
    return tuple(dict.fromkeys(name for name in (*IMPLEMENTATIONS, *installed) if name != CONTROL))


def is_own(name: str) -> bool:
    """Return whether an implementation is a user's own: `module:attribute`, or from an installed package."""
    return parse(name).base not in catalogue.IMPLEMENTATIONS


def is_module(layer: object) -> bool:
    """Return whether a layer's name is that of a module of anybody: a user's own, a package's or a library's."""
    return isinstance(layer, str) and layers.is_own(layer)


def is_own_code(layer: str) -> bool:
    """Return whether a layer, or the model of a point, comes from a module of a user's own."""
    return layers.is_own(layer) and layer.partition(":")[0] not in SOURCES


def libraries(names: Iterable[str]) -> tuple[str, ...]:
    """Return the libraries and modules of packages that layers need; for a module of a user's own that is torch."""
    path = search_path()
    sources = dict.fromkeys(name.partition(":")[0] for name in names if layers.is_own(name))
    return tuple(dict.fromkeys(each if each in SOURCES or _is_installed(each, path) else "torch" for each in sources))


def _is_installed(module: str, path: Sequence[str]) -> bool:
    spec = _find(module, path)
    return bool(spec and spec.origin and {"site-packages", "dist-packages"} & {*Path(spec.origin).parts})


def search_path() -> list[str]:
    """Return the folders in which a worker process looks for modules."""
    return list(dict.fromkeys(entry or str(Path.cwd()) for entry in ("", *sys.path)))


def misspelled(name: str, kind: str = "implementation") -> str:
    """Return the error line for the name of a file, or of a module here, in place of `module:attribute`; else empty."""
    module, _, attribute = name.partition(":")
    path = Path(module.removesuffix(".py"))
    is_file = "/" in module or module.endswith(".py")
    is_here = ":" not in name and module and any(map(Path.is_file, (Path(f"{module}.py"), path / "__init__.py")))
    if not (is_file or is_here):
        return ""
    right = path.name if path.is_absolute() or ".." in path.parts else ".".join(path.parts)
    return (
        f"{kind} {name!r} must be spelled module:attribute, the module as Python imports it; "
        f"did you mean {right}:{attribute or USUAL_ATTRIBUTES[kind]}?"
    )


def check_own(names: Iterable[str]) -> None:
    """Raise WrongRequest, with a line for each, if a worker can't find some of a user's implementations."""
    path = search_path()
    refuse(line for name in names if ":" in name and (line := mistake_of(name, path)))


def check_layers(points: Iterable[Point]) -> None:
    """Raise WrongRequest, with a line for each, if a worker can find none of the layers of points.

    One that it can't find beside others ends its own rows, as one does that can't be imported.
    """
    path, every = search_path(), dict.fromkeys(point.layer for point in points)
    mistakes = {name: is_own_code(name) and mistake_of(name, path, "layer") for name in every}
    if mistakes and all(mistakes.values()):
        refuse(map(str, mistakes.values()))


def mistake_of(name: str, path: Sequence[str], kind: str = "implementation") -> str:
    """Return, in one line, why `module:attribute` can't be an implementation or layer; empty if it may be one.

    The module is searched in the folders of `path`, and not imported: a worker does that, and says what it lacks.
    """
    module = name.partition("[")[0].partition(":")[0]
    importlib.invalidate_caches()
    if _find(module, path):
        return ""
    near = "" if "." in module else suggestion(module, sorted(file.stem for file in Path().glob("*.py")))
    return (
        f"{kind} {name.partition('[')[0]!r}: there is no module {module}; "
        f"it must lie where you run the command ({Path.cwd()}) or on PYTHONPATH, or be installed here{near}"
    )


def _find(module: str, path: Sequence[str]) -> ModuleSpec | None:
    """Return a module's spec, None if there is none; parent packages are not imported."""
    first, *rest = module.split(".")
    spec = PathFinder.find_spec(first, path)
    if spec is None:  # no folder of the path has it: it may be built in, or an editable install
        with contextlib.suppress(ImportError, ValueError):
            spec = importlib.util.find_spec(first)
    for name in rest:
        if spec is None or spec.submodule_search_locations is None:
            return None
        spec = PathFinder.find_spec(name, list(spec.submodule_search_locations))
    return spec


def mistakes(given: Sequence[object], path: Sequence[str] | None) -> list[str]:
    """Return why names can't be those of implementations: a line for all unknown ones, and one for each other mistake.

    `path` has the folders that must contain the modules of a user's own; None skips this check.
    """
    lines = [f"implementation {name!r} is named twice" for name, count in Counter(map(str, given)).items() if count > 1]
    of_each = [_mistakes_of(name, path) if isinstance(name, str) else None for name in given]
    lines += [line for each in of_each for line in each or ()]
    unknown = [name for name, each in zip(given, of_each, strict=True) if each is None]
    known = (*known_names(), "module:attribute")
    return [unknown_names("implementation", unknown, known, PRINTED), *lines] if unknown else lines


def _mistakes_of(name: str, path: Sequence[str] | None) -> list[str] | None:
    """Return a line for each reason why a name can't be an implementation; None if it is unknown."""
    try:
        parsed = parse(name)
    except ValueError as error:
        return [str(error)]
    base, is_known = parsed.base, is_implementation(name)
    if (":" in base or not is_known) and (line := misspelled(base)):
        return [line]
    if not is_known:
        return None
    if ":" in base:
        return [line] if path is not None and (line := mistake_of(name, path)) else []
    return _wrong_options(base, parsed.options) if base in catalogue.IMPLEMENTATIONS else []


def _wrong_options(base: str, given: Mapping[str, Any]) -> list[str]:
    """Return an error line for each option of a name that an implementation doesn't have, and for each wrong value."""
    entry, lines = catalogue.IMPLEMENTATIONS[base], list[str]()
    for option, value in given.items():
        values = catalogue.VALUES.get(option, (value,))
        if option not in entry.options:
            names = ", ".join(entry.options)
            rule = f"option {option!r}; expected one of {names}" if names else f"options, got {option!r}"
            lines.append(f"implementation {base!r} has no {rule}{suggestion(option, entry.options)}")
        elif value not in values:
            lines.append(f"option {option} = {value!r} of {base} must be {' or '.join(values)}")
    return lines
