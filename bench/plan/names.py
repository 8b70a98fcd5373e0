"""The names of layers and implementations, and checks of a user's own (`module:attribute`) without importing them."""

import contextlib
import importlib.util
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from bench.plan.controls import CONTROLLING
from bench.plan.errors import WrongRequest, refuse, suggestion, unknown_names
from bench.plan.invocation import short
from bench.plan.layers import layer_of
from impls.catalogue import IMPLEMENTATIONS, SOURCES, VALUES, Name, name_of

PRINTED = f"the names in `{short()} list`"
"""Where all names are listed, in place of a long list."""

USUAL_ATTRIBUTES = {"implementation": "attend", "layer": "MyAttention", "model": "make"}
"""The attribute that an error line proposes for a name without one."""


@cache
def check_texts(implementation: str, layer: str, *others: str) -> None:
    """Raise ValueError for texts of a case that no request can have: malformed names and control characters."""
    for name in filter(None, (implementation, layer)):
        name_of(name)
    for text in (implementation, layer, *others):
        if CONTROLLING.search(text):
            raise ValueError(f"a case must not contain control characters, got {text!r}")


def read(text: str) -> Name:
    """Return a name with its options; raises WrongRequest if it breaks the grammar."""
    try:
        return name_of(text)
    except ValueError as error:
        raise WrongRequest(str(error)) from None


def libraries(layers: Iterable[str]) -> tuple[str, ...]:
    """Return the libraries and packaged modules that layers need; for a user's own module, torch."""
    path = search_path()
    sources = dict.fromkeys(name_of(layer).module for layer in layers if ":" in layer)
    return tuple(dict.fromkeys(each if each in SOURCES or _is_installed(each, path) else "torch" for each in sources))


def _is_installed(module: str, path: Sequence[str]) -> bool:
    spec = _find(module, path)
    return bool(spec and spec.origin and {"site-packages", "dist-packages"} & {*Path(spec.origin).parts})


def search_path() -> list[str]:
    """Return the folders in which a worker process looks for modules."""
    return list(dict.fromkeys(entry or str(Path.cwd()) for entry in ("", *sys.path)))


def misspelled(name: str, kind: str = "implementation") -> str:
    """Return the error line for a file's or module's name in place of `module:attribute`; empty for other names."""
    module, _, attribute = name.partition(":")
    path = Path(module.removesuffix(".py"))
    is_file = "/" in module or module.endswith(".py")
    is_here = ":" not in name and module and any(map(Path.is_file, (Path(f"{module}.py"), path / "__init__.py")))
    if not (is_file or is_here):
        return ""
    right = path.name if path.is_absolute() or ".." in path.parts else ".".join(path.parts)
    return (
        f"{kind} {name!r} must be module:attribute, the module by its import name; "
        f"did you mean {right}:{attribute or USUAL_ATTRIBUTES[kind]}?"
    )


def check_layers(layers: Iterable[str], path: Sequence[str] | None) -> None:
    """Raise WrongRequest, with a line for each, for layers whose modules aren't in the folders of `path`.

    None skips this check.
    """
    if path is not None:
        refuse(mistake_of(name, path, "layer") for name in dict.fromkeys(layers) if layer_of(name).is_users)


def mistake_of(name: str, path: Sequence[str], kind: str = "implementation") -> str:
    """Return a line that says why `module:attribute` can't be an implementation or layer; empty if it may be one.

    The module is looked for in the folders of `path` but not imported: a worker does that, and reports errors.
    """
    parsed = name_of(name)
    module = parsed.module
    importlib.invalidate_caches()
    if _find(module, path):
        return ""
    near = "" if "." in module else suggestion(module, sorted(file.stem for file in Path().glob("*.py")))
    return (
        f"{kind} {parsed.base!r}: there is no module {module}; "
        f"put it in the current folder ({Path.cwd()}) or on PYTHONPATH, or install it{near}"
    )


def _find(module: str, path: Sequence[str]) -> ModuleSpec | None:
    """Return a module's spec, None if there is none; parent packages are not imported."""
    first, *rest = module.split(".")
    spec = PathFinder.find_spec(first, path)
    if spec is None:  # not in a folder of the path: it may be built in, or an editable install
        with contextlib.suppress(ImportError, ValueError):
            spec = importlib.util.find_spec(first)
    for name in rest:
        if spec is None or spec.submodule_search_locations is None:
            return None
        spec = PathFinder.find_spec(name, list(spec.submodule_search_locations))
    return spec


def mistakes(given: Sequence[object], path: Sequence[str] | None) -> list[str]:
    """Return a line for all unknown names of implementations, and one for each other mistake.

    `path` has the folders that must contain the modules of a user's own; None skips this check.
    """
    lines = [f"implementation {name!r} is named twice" for name, count in Counter(map(str, given)).items() if count > 1]
    of_each = [_mistakes_of(name, path) if isinstance(name, str) else None for name in given]
    lines += [line for each in of_each for line in each or ()]
    unknown = [name for name, each in zip(given, of_each, strict=True) if each is None]
    if not unknown:
        return lines
    return [unknown_names("implementation", unknown, (*IMPLEMENTATIONS, "module:attribute"), PRINTED), *lines]


def _mistakes_of(name: str, path: Sequence[str] | None) -> list[str] | None:
    """Return a line for each reason why a name can't be an implementation; None if it is unknown."""
    try:
        parsed = name_of(name)
    except ValueError as error:
        return [str(error)]
    is_path = ":" in parsed.base
    is_known = parsed.module and parsed.attribute if is_path else not parsed.is_own
    if (is_path or not is_known) and (line := misspelled(parsed.base)):
        return [line]
    if not is_known:
        return None
    if is_path:
        if own := [own for own, entry in IMPLEMENTATIONS.items() if entry.function == parsed.base]:
            return [f"implementation {name!r} is called {own[0]} here; write {own[0]}"]
        return [line] if path is not None and (line := mistake_of(name, path)) else []
    return [] if parsed.is_own else _wrong_options(parsed)


def _wrong_options(name: Name) -> list[str]:
    """Return an error line for each option that the implementation doesn't have, and for each wrong value."""
    known, lines = name.entry.options, list[str]()
    for option, value in name.options.items():
        values = VALUES.get(option, (value,))
        if option not in known:
            rule = f"option {option!r}; expected one of {', '.join(known)}" if known else f"options, got {option!r}"
            lines.append(f"implementation {name.base!r} has no {rule}{suggestion(option, known)}")
        elif value not in values:
            lines.append(f"option {option} = {value!r} of {name.base} must be {' or '.join(values)}")
    return lines
