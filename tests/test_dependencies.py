"""Dependencies between packages: each imports only packages below it, and reading results needs no torch."""

import ast
import importlib.util
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

DECLARED = "impls.catalogue"
"""The module of impls that imports no torch: the declarations and names of implementations."""

BELOW: dict[str, set[str]] = {
    DECLARED: set(),
    "impls": {DECLARED},
    "bench.plan": {DECLARED},
    "bench.store": {"bench.plan"},
    "bench.machine": {"bench.store", "bench.plan"},
    "bench.stats": set(),
    "bench.sampling": {"bench.machine", "bench.store", "bench.plan"},
    "bench.analyse": {"bench.stats", "bench.store", "bench.plan", DECLARED},
    "bench.show": {"bench.analyse", "bench.stats", "bench.store", "bench.plan", DECLARED},
    "bench.show.terminal": {"bench.show"},
    "bench.show.comparison": {"bench.show"},
    "bench.show.charts": {"bench.show"},
    "bench.show.pages": {"bench.show.charts", "bench.show"},
    "bench.modules": {"bench.plan", "impls", DECLARED},
    "bench.measure": {"bench.modules", "bench.sampling", "bench.machine", "bench.plan", "impls", DECLARED},
    "bench.engine": {"bench.analyse", "bench.sampling", "bench.machine", "bench.store", "bench.plan", DECLARED},
    "bench.profiling": {
        "bench.engine", "bench.measure", "bench.modules", "bench.analyse", "bench.sampling",
        "bench.machine", "bench.store", "bench.plan", DECLARED,
    },
    "bench.commands": {
        "bench.profiling", "bench.engine", "bench.show", "bench.analyse", "bench.stats",
        "bench.machine", "bench.store", "bench.plan", DECLARED,
    },
}  # fmt: skip
"""The packages from the lowest up, each with its imports; the engine talks to workers through a pipe.

A package inside another is listed with those beside it, and may import what the one around it may.
"""

AROUND = {name: name.rpartition(".")[0] for name in BELOW if name.rpartition(".")[0] in BELOW and name != DECLARED}
"""The package around each that is inside another."""

TOP_LEVEL = "bench"
"""The modules in bench/ itself: only entry points, above all packages."""

USE_TORCH = {"impls", "bench.modules", "bench.measure", "bench.profiling"}
"""The packages that run in a worker process. Entry points run in the parent, which imports no torch."""

LINES: dict[str, int] = {
    DECLARED: 380,
    "impls": 2150,
    "bench.plan": 2695,
    "bench.store": 1660,
    "bench.machine": 735,
    "bench.stats": 525,
    "bench.sampling": 505,
    "bench.analyse": 1985,
    "bench.show": 2115,
    "bench.show.terminal": 150,
    "bench.show.comparison": 455,
    "bench.show.charts": 785,
    "bench.show.pages": 160,
    "bench.modules": 2840,
    "bench.measure": 4595,
    "bench.engine": 2975,
    "bench.profiling": 565,
    "bench.commands": 1870,
    "bench": 290,
}
"""The most lines that a package has: who needs more raises the number here, and says in the commit why."""

LIGHT = sorted({*BELOW, TOP_LEVEL} - USE_TORCH - {DECLARED})


def package_of(module: str) -> str:
    """Return the package that a module of ours belongs to."""
    if ".".join(module.split(".")[:2]) == DECLARED:
        return DECLARED
    inner, middle, top = (".".join(module.split(".")[:length]) for length in (3, 2, 1))
    if inner in AROUND:
        return inner
    return middle if middle in BELOW or (top == "bench" != middle and is_package(middle)) else top


def is_package(module: str) -> bool:
    """Return whether a module of ours is a folder."""
    return (ROOT / module.replace(".", "/")).is_dir()


def imports(source: str, module: str, *, package: bool = False) -> Iterator[str]:
    """Yield every module that a source may import, at its top or inside its functions, absolutely named."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), parent(module, package))
            # `from bench import plan` means the package and `from bench import run` the entry point
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and called(node.func) in ("import_module", "__import__"):
            yield from (str(argument.value) for argument in node.args[:1] if isinstance(argument, ast.Constant))


def called(function: ast.expr) -> str:
    """Return the last name of a function that is called."""
    return str(getattr(function, "attr", getattr(function, "id", "")))


def parent(module: str, package: bool) -> str:
    """Return the package that relative imports of a module start from."""
    return module if package else module.rpartition(".")[0]


def may_import(package_name: str, name: str) -> bool:
    """Return whether a package may import a module."""
    top = name.partition(".")[0]
    if top == "torch":
        return package_name in USE_TORCH
    if top not in ("bench", "impls", "tests"):
        return True
    target, below = package_of(name), BELOW.get(package_name, set())
    around, around_target = AROUND.get(package_name, package_name), AROUND.get(target, target)
    if around == around_target:
        return target == package_name or target in below
    return (package_name == TOP_LEVEL and top != "tests") or around_target in BELOW.get(around, set())


def modules() -> list[tuple[str, Path]]:
    """Return every module of ours with its file."""
    files = sorted(file for top in ("bench", "impls") for file in (ROOT / top).rglob("*.py"))
    return [(".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"), file) for file in files]


@cache
def imported() -> dict[str, list[str]]:
    """Return every module of the project with its imports."""
    return {
        module: [*imports(file.read_text(encoding="utf-8"), module, package=file.stem == "__init__")]
        for module, file in modules()
    }


def test_dependencies() -> None:
    """A module imports only its own package and packages below it, which is declared, and torch only if it may."""
    assert {package_of(module) for module in imported()} <= {*BELOW, TOP_LEVEL}
    found = {(module, name) for module, names in imported().items() for name in names}
    assert {(module, name) for module, name in found if not may_import(package_of(module), name)} == set()


def test_an_import_upwards_or_of_torch_is_found() -> None:
    """Inside a function too, and if it is relative."""
    found = [*imports("def f():\n    import torch\n    from .. import plan, show\n", "bench.store.table")]
    assert [may_import("bench.store", each) for each in found] == [False, True, False]


def test_of_the_commands_profile_and_call_alone_use_what_imports_torch() -> None:
    """All others run on any laptop: what they import, also inside functions, imports no torch."""
    of_commands = {module: names for module, names in imported().items() if package_of(module) == "bench.commands"}
    using = {module for module, names in of_commands.items() if {*map(package_of, names)} & USE_TORCH}
    assert using == {"bench.commands.profile", "bench.commands.call"}


def test_no_modules_import_each_other() -> None:
    """Imports make no circle between modules, also inside functions and for types alone."""
    graph = {
        module: {name if name in imported() else parent(name, package=False) for name in names} - {module}
        for module, names in imported().items()
    }
    TopologicalSorter(graph).prepare()  # the error has the modules of a circle


def test_every_package_has_modules_and_uses_what_it_may_import() -> None:
    """The test of dependencies can't pass by finding no modules; lower packages come first, and each is imported."""
    packages = list(BELOW)
    for place, package_name in enumerate(packages):
        of = {module: package_of(module) for module in imported()}
        own = [imported()[module] for module in of if package_name in (of[module], AROUND.get(of[module]))]
        inner = {package_of(name) for names in own for name in names if name.partition(".")[0] in ("bench", "impls")}
        used = inner | {AROUND[each] for each in inner if each in AROUND}
        assert own, package_name
        assert BELOW[package_name] <= {*packages[:place]} & used, package_name


def lines() -> Counter[str]:
    """Return the number of lines of each package, without its inner packages."""
    counts = Counter[str]()
    for module, file in modules():
        counts[package_of(module)] += len(file.read_text(encoding="utf-8").splitlines())
    return counts


def test_no_package_grows_unnoticed() -> None:
    """A package may grow only with a larger number in LINES, and with a reason in the commit."""
    grown = {name: f"{count} lines" for name, count in lines().items() if count > LINES.get(name, 0)}
    assert grown == {}, "raise the number in LINES here, and say in the commit what the package needs more lines for"


IMPORT_ONE_BY_ONE = """
import importlib, pkgutil, sys

class Refuses:
    def find_spec(self, name, *_):
        if name in ("torch", "impls.contract"):
            sys.exit(f"{imported} brings {name}")

def modules_of(name):
    global imported
    imported = name
    module = importlib.import_module(name)
    yield name
    for found in pkgutil.iter_modules(getattr(module, "__path__", []), name + "."):
        if name != "bench" or not found.ispkg and found.name != "bench.__main__":
            yield from modules_of(found.name)

sys.meta_path.insert(0, Refuses())
for package_name in sys.argv[1:]:
    for name in modules_of(package_name):
        print(name)
"""


def import_one_by_one(*packages: str) -> tuple[list[str], str]:
    """Import packages module by module in a fresh interpreter until one brings torch; return those before, and it."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ONE_BY_ONE, *packages], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.split(), done.stderr.strip()


@pytest.mark.slow
def test_light_packages_bring_no_torch() -> None:
    """Importing bench, its entry points, and every module that plans, reads results or starts workers is light.

    A module that does bring torch is noticed by its name.
    """
    names, objection = import_one_by_one(*LIGHT, "bench.measure.finite")
    assert objection == "bench.measure.finite brings torch"
    assert {name for name in imported() if package_of(name) in LIGHT} - {"bench.__main__"} == set(names)


MEASURES_TWICE = """
import sys, bench.measure.server as server
print({"pandas"} & {*sys.modules} or "none")
from bench.measure import cores, reference
from bench.sampling.requests import Warm
from tests.make.points import point
from tests.measure.stub import case

for mode, long_scores in (("inference", 100), ("train", cores.LONG_SCORES)):
    cores.LONG_SCORES = reference.LONG_SCORES = long_scores
    server.warm(Warm(False, mode == "train", ["eager"]))
    before = {*sys.modules}
    with case(point(mode=mode), "eager", thorough=True) as process:
        assert process.measure(2)["metrics"]["kernels"]
        assert {*process.reasons().values()} == {""}
    print({"torch._dynamo", "sympy"} & ({*sys.modules} - before) or "none")
"""


@pytest.mark.slow
def test_a_process_that_compiles_nothing_imports_no_compiler() -> None:
    """Neither to measure a case and inspect its calls, nor to judge it, without gradients also for a long sequence.

    Its import takes one to three seconds, and that of sympy one: torch needs it for indices without memory, and for
    gradients, for which the server imports it.
    """
    done = subprocess.run([sys.executable, "-c", MEASURES_TWICE], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split()[-3:] == ["none"] * 3
