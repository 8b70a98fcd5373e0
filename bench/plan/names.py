"""The names of layers and implementations, and the checks of a user's own, `module:attribute`, without an import."""

import ast
import contextlib
import importlib.util
import re
import symtable
import sys
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import entry_points
from pathlib import Path

from bench.plan import layers
from bench.plan.case import CONTROL, Point
from bench.plan.controls import CONTROLLING
from bench.plan.errors import refuse, suggestion
from impls import catalogue
from impls.catalogue import ATTEND_PARAMETERS, CORE_KEYWORDS, SOURCES, parse

LAYERS = {name: layer.meaning for name, layer in layers.LAYERS.items()}

IMPLEMENTATIONS = {name: entry.meaning for name, entry in catalogue.IMPLEMENTATIONS.items()}

USUAL_ATTRIBUTES = {"implementation": ("attend", "adapt"), "layer": ("MyAttention",), "model": ("make",)}
"""The attributes that an error line proposes if a name has none: the first that the module has, else its first own."""

DYNAMIC = re.compile(r"(?<![\w.])(exec|eval|globals|locals|setattr|vars|__getattr__)\b|import \*")
"""A module with one of these may have names that its source doesn't show."""


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


def may_have_own_memory(name: str) -> bool:
    """Return whether an implementation may use memory that torch's allocator does not see."""
    return is_own(name) or bool(catalogue.IMPLEMENTATIONS[parse(name).base].packages)


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
    """Return the error line for the name of a file, a module here or a dotted name in place of `module:attribute`.

    It is empty if the name is none of these.
    """
    module, colon, attribute = name.partition(":")
    where, here = "", [Path(f"{module}.py"), Path(module, "__init__.py")]
    if "/" in module or module.endswith(".py"):
        path = Path(module.removesuffix(".py"))
        is_elsewhere = path.is_absolute() or ".." in path.parts
        where = ", and run it from that folder" if is_elsewhere else ""
        right = path.name if is_elsewhere else ".".join(path.parts)
        attribute = attribute if colon else _usual_attribute(path.with_suffix(".py"), kind)
    elif colon:
        return ""
    elif file := next((file for file in here if module and file.is_file()), None):
        right, attribute = module, _usual_attribute(file, kind)
    else:
        right, _, attribute = module.rpartition(".")
    if not (right and attribute):
        return ""
    return (
        f"{kind} {name!r} must be spelled module:attribute, the module as Python imports it; "
        f"did you mean {right}:{attribute}{where}?"
    )


def _usual_attribute(file: Path, kind: str) -> str:
    """Return the attribute that an error line proposes for a module: one that its source defines, if it is here."""
    usual, kinds = USUAL_ATTRIBUTES[kind], (ast.ClassDef, *(() if kind == "layer" else (ast.FunctionDef,)))
    with contextlib.suppress(OSError, ValueError, SyntaxError):
        body = ast.parse(file.read_bytes()).body
        defined = [node.name for node in body if isinstance(node, kinds) and not node.name.startswith("_")]
        return next((name for name in (*usual, *defined) if name in defined), usual[0])
    return usual[0]


def check_own(names: Iterable[str], kind: str = "implementation") -> None:
    """Raise WrongRequest, with a line for each, if a worker can't find some of a user's implementations or layers."""
    path = search_path()
    refuse(line for name in names if ":" in name and (line := mistake_of(name, path, kind)))


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

    The module's source is searched in the folders of `path` and read, never run. Options in the name have a line each,
    if the source shows that the function doesn't declare them.
    """
    name, bracket, options = name.partition("[")
    module, _, attribute = name.partition(":")
    importlib.invalidate_caches()
    spec = _find(module, path)
    if spec is None:
        near = "" if "." in module else suggestion(module, sorted(file.stem for file in Path().glob("*.py")))
        return (
            f"{kind} {name!r}: there is no module {module}; "
            f"it must lie where you run the command ({Path.cwd()}) or on PYTHONPATH, or be installed here{near}"
        )
    try:
        names = _names_in(spec)
    except SyntaxError as error:
        return f"{kind} {name!r} can't be imported: {spec.origin}, line {error.lineno}: {error.msg}"
    first = attribute.partition(".")[0]
    if names is None or first in names or _find(f"{module}.{first}", path):
        is_shown = bracket and names and kind == "implementation"
        declared = _options_in(Path(str(spec.origin)), attribute) if is_shown else None
        given = {} if declared is None else parse(f"{name}[{options}").options
        return "\n".join(wrong_options(name, given, declared or ()))
    public = sorted(name for name in names if not name.startswith("_"))
    content = f"it has {', '.join(public)}" if public else "it has no names"
    return f"{kind} {name!r}: {module} has no {first}; {content}{suggestion(first, public)}"


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


def wrong_options(base: str, given: Iterable[str], declared: Collection[str]) -> list[str]:
    """Return an error line for each option of a name that an implementation doesn't declare."""
    rules = {
        option: f"option {option!r}; expected one of {', '.join(declared)}" if declared else f"options, got {option!r}"
        for option in given
        if option not in declared
    }
    return [f"implementation {base!r} has no {rule}{suggestion(option, declared)}" for option, rule in rules.items()]


def _options_in(file: Path, name: str) -> list[str] | None:
    """Return the options of a function that a module's source defines, once and undecorated; None if it doesn't."""
    body = ast.parse(file.read_bytes())
    match [node for node in ast.walk(body) if _binds(node, name)]:
        case [ast.FunctionDef(args=arguments, decorator_list=[])]:
            required = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
            of_core = set(CORE_KEYWORDS) if required >= ATTEND_PARAMETERS else set()
            return sorted({each.arg for each in arguments.kwonlyargs} - of_core)
    return None


def _binds(node: ast.AST, name: str) -> bool:
    """Return whether a part of a source may give a value to a name, in whatever scope."""
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Load)
    return name == (getattr(node, "asname", None) or getattr(node, "name", None))


def _names_in(spec: ModuleSpec) -> set[str] | None:
    """Return the names that a module's source binds, None if it may have others; raises SyntaxError."""
    if not (spec.origin or "").endswith(".py"):
        return None
    try:
        source = importlib.util.decode_source(Path(str(spec.origin)).read_bytes())
        symbols = symtable.symtable(source, str(spec.origin), "exec").get_symbols()
    except (OSError, ValueError):
        return None
    bound = {
        each.get_name() for each in symbols if each.is_assigned() or each.is_imported() or each.is_declared_global()
    }
    return None if DYNAMIC.search(source) else bound
