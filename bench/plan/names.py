"""The names of layers and implementations, and the checks of a user's own, `module:attribute`, without an import."""

import ast
import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import entry_points
from pathlib import Path

from bench.plan import layers
from bench.plan.case import CONTROL, Point
from bench.plan.errors import WrongRequest, suggestion
from impls import catalogue
from impls.name import SOURCES, is_model, parse

LAYERS = {name: layer.meaning for name, layer in layers.LAYERS.items()}

IMPLEMENTATIONS = {name: entry.meaning for name, entry in catalogue.IMPLEMENTATIONS.items()}


USUAL_ATTRIBUTES = {"implementation": "adapt", "attend": "attend", "layer": "MyAttention", "model": "make"}
"""The attribute that an error line proposes if a name has none."""

DYNAMIC = {"exec", "eval", "globals", "locals", "setattr", "vars"}
"""A module that uses one of these may have names that its source doesn't show."""


def is_implementation(name: str) -> bool:
    """Return whether a name may be an implementation; `module:attribute` is checked later, at its import."""
    try:
        base = parse(name).base
    except ValueError:
        return False
    module, colon, attribute = base.partition(":")
    return bool(module and attribute) if colon else base in known_names() or base in catalogue.SETTINGS


def known_names() -> tuple[str, ...]:
    """Return the names of implementations: the suite's own, and those of installed packages, none of them CONTROL."""
    installed = (entry.name for entry in entry_points(group=catalogue.ENTRY_POINT_GROUP))
    return tuple(dict.fromkeys(name for name in (*IMPLEMENTATIONS, *installed) if name != CONTROL))


def is_own(name: str) -> bool:
    """Return whether an implementation is a user's own: `module:attribute`, or from an installed package."""
    return parse(name).base not in catalogue.KNOWN


def may_have_own_memory(name: str) -> bool:
    """Return whether an implementation may use memory that torch's allocator does not see."""
    return is_own(name) or bool(catalogue.KNOWN[parse(name).base].packages)


def libraries_of(points: Iterable[Point]) -> tuple[str, ...]:
    """Return the libraries that the models of points come from; for a model of a user's own that is torch."""
    sources = dict.fromkeys(point.layer.partition(":")[0] for point in points if is_model(point.layer))
    return tuple(dict.fromkeys(source if source in SOURCES else "torch" for source in sources))


def search_path() -> list[str]:
    """Return the folders in which a worker process looks for modules."""
    return list(dict.fromkeys(entry or str(Path.cwd()) for entry in ("", *sys.path)))


def misspelled(name: str, kind: str = "implementation") -> str:
    """Return the error line for a file name or dotted name in place of `module:attribute`, empty if it is neither."""
    module, colon, attribute = name.partition(":")
    if colon:
        right, is_wrong = _dotted(module), bool(attribute) and _dotted(module) not in ("", module)
    elif "/" in module or module.endswith(".py"):
        right, attribute, is_wrong = _dotted(module), USUAL_ATTRIBUTES[kind], True
    else:
        right, _, attribute = module.rpartition(".")
        is_wrong = bool(right and attribute)
    if not is_wrong:
        return ""
    where = ", and run it from that folder" if _is_elsewhere(module) else ""
    return (
        f"{kind} {name!r} must be spelled module:attribute, the module as Python imports it; "
        f"did you mean {right}:{attribute}{where}?"
    )


def check_own(names: Iterable[str], kind: str = "implementation") -> None:
    """Raise WrongRequest, with a line for each, if a worker can't find some of a user's implementations or layers."""
    path = search_path()
    if mistakes := [line for name in names if ":" in name and (line := mistake_of(name, path, kind))]:
        raise WrongRequest("\n".join(mistakes))


def mistake_of(name: str, path: Sequence[str], kind: str = "implementation") -> str:
    """Return, in one line, why `module:attribute` can't be an implementation or layer; empty if it may be one.

    The module's source is searched in the folders of `path` and read, never run.
    """
    module, _, attribute = name.partition(":")
    importlib.invalidate_caches()
    spec = _find(module, path)
    if spec is None:
        near = "" if "." in module else suggestion(module, sorted(file.stem for file in Path().glob("*.py")))
        return (
            f"{kind} {name!r}: there is no module {module}; "
            f"it must lie where you run the command ({Path.cwd()}) or on PYTHONPATH{near}"
        )
    try:
        tree = _source(spec)
    except SyntaxError as error:
        return f"{kind} {name!r} can't be imported: {spec.origin}, line {error.lineno}: {error.msg}"
    first = attribute.partition(".")[0]
    names = None if tree is None or _is_submodule(first, spec) else _names(tree)
    if names is None or first in names:
        return ""
    public = sorted(name for name in names if not name.startswith("_"))
    content = f"it has {', '.join(public)}" if public else "it has no names"
    return f"{kind} {name!r}: {module} has no {first}; {content}{suggestion(first, public)}"


def _dotted(module: str) -> str:
    """Return the name under which Python imports a file that is given by its path."""
    if not ("/" in module or module.endswith(".py")):
        return module
    path = Path(module.removesuffix(".py"))
    return path.name if _is_elsewhere(module) else ".".join(path.parts)


def _is_elsewhere(path: str) -> bool:
    return Path(path).is_absolute() or ".." in Path(path).parts


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


def _source(spec: ModuleSpec) -> ast.Module | None:
    """Return the syntax tree of a module's source, None if it has none; raises SyntaxError."""
    if not spec.origin or not spec.origin.endswith(".py"):
        return None
    try:
        return ast.parse(importlib.util.decode_source(Path(spec.origin).read_bytes()))
    except (OSError, ValueError):
        return None


def _is_submodule(name: str, spec: ModuleSpec) -> bool:
    folders = spec.submodule_search_locations
    return folders is not None and PathFinder.find_spec(name, list(folders)) is not None


def _names(tree: ast.Module) -> set[str] | None:
    """Return the names that a module's source binds, None if it may have others."""
    names: set[str] = set()
    for node in _top_level(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Name(ctx=ast.Store()):
                names.add(node.id)
            case ast.Import() | ast.ImportFrom():
                names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            names |= {*node.names}
        if isinstance(node, ast.Name) and node.id in DYNAMIC:
            return None
    return None if {"*", "__getattr__"} & names else names


def _top_level(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the descendants of a node, except those inside functions and classes."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _top_level(child)
