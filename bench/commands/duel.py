"""Measure two implementations, or one in two environments, side by side."""

import argparse
import dataclasses
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.commands import BAD, FINE, say
from bench.engine.run import Run
from bench.engine.trials import shaped
from bench.engine.two_environments import SIDES, Pair
from bench.harness import options
from bench.harness.progress import progress_of, screen_of
from bench.machine.doctor import LEAST_TORCH
from bench.machine.facts import here
from bench.plan.errors import WrongRequest
from bench.plan.names import search_path
from bench.plan.sweep import Effort, Sweep, load_sweep
from bench.show import summary as show
from bench.show.answer import At, points_of
from bench.show.terminal.console import console, render
from bench.store.environment import Environment, differences
from bench.store.table import of_rows, without_control

PRINT_TORCH = "from importlib.metadata import distributions as d; print(*[t.version for t in d(name='torch')][:1])"
"""The program that prints the version of an interpreter's torch, and nothing if it has none; it imports no torch."""

ABSENT = {"file": "not imported", "digest": ""}
"""A module that one side alone imports, on the other side."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_option = parser.add_argument
    add_option("implementations", metavar="IMPL", nargs="+", help="A and B; one alone with two --python")
    options.add_python(add_option, "an interpreter with its own torch; give it twice, for A and for B")
    add_option("--sweep", metavar="NAME|FILE.toml", help="the points (default: one, of 197 tokens and 384 channels)")
    options.add_run(add_option, "<UTC time>-duel-<sweep>")
    options.add_columns(add_option)
    options.add_race(add_option)
    options.add_timeout(add_option)


def run(arguments: argparse.Namespace) -> int:
    """Measure a duel and print it; BAD if a side could not be measured at some point."""
    names, pythons = _sides(arguments)
    sweep = _sweep(arguments, names)
    folder = options.run_folder(arguments, sweep.name)
    with Pair(sweep, folder, pythons) if pythons else Run(sweep, folder, needs_all=True) as duel:
        answered = run_duel(duel)
    say(*show.go_on(f"the same command with --run {folder}", sweep.effort, duel.summary, sweep.points))
    where = f"{' and '.join(map(str.lower, SIDES))} in {folder}" if pythons else str(folder)
    say(f"Everything is in {where}: results.csv, journal.jsonl, environment.json.")
    is_whole = all(show.both_measured(at, *duel.sweep.implementations) for at in answered)
    return FINE if is_whole and answered else BAD


def run_duel(duel: Run | Pair) -> list[At]:
    """Return what a race of two says of each point; print the sides, the answered points and the table."""
    say(*_introduction(duel))
    out, points = console(), duel.sweep.points
    progress = progress_of(duel.sweep, len(points), screen_of(out), height=out.height)
    duel.heard = progress.heard
    try:
        progress.opened(duel.folder)
        progress.started(duel.warnings)
        progress.races(duel.end_s(len(points)))
        duel.race(points, lambda at, look: progress.looked(at, look, without_control(of_rows(duel.summary.rows(at)))))
    finally:
        progress.close()
    answered = points_of(
        of_rows([row for point in points if point in duel.summary for row in duel.summary.rows(point)])
    )
    a, b = duel.sweep.implementations
    out.print(render(show.duel(answered, a, b)))
    return answered


def _sides(arguments: argparse.Namespace) -> tuple[list[str], tuple[str, str] | None]:
    """Return the implementations and the two interpreters, if two environments are asked for."""
    names: list[str] = arguments.implementations
    if arguments.python:
        if len(arguments.python) != 2 or len(names) != 1:
            given = f"{', '.join(names)} and {len(arguments.python)} of --python"
            raise WrongRequest(f"two environments take one implementation and --python twice, got {given}")
        a, b = map(interpreter, arguments.python)
        return names, (a, b)
    if len(names) != 2:
        raise WrongRequest(f"a duel takes two implementations, or one with two --python, got {', '.join(names)}")
    if names[0] == names[1]:
        raise WrongRequest(f"{names[0]} twice is no duel; for an A/A: duel {names[0]} --python X --python X")
    return names, None


def interpreter(path: str) -> str:
    """Return the path of the program that --python names; raises WrongRequest if it is none, or lacks a new torch."""
    program = shutil.which(path)
    if program is None:
        raise WrongRequest(f"--python {path} must be a Python interpreter, and there is no such program")
    try:
        done = subprocess.run([program, "-c", PRINT_TORCH], capture_output=True, text=True, check=False)
    except OSError as error:
        raise WrongRequest(f"--python {path} must be a Python interpreter: {error.strerror}") from None
    if done.returncode:
        last = "".join(done.stderr.splitlines()[-1:])
        raise WrongRequest(f"--python {path} must be a Python interpreter; it ended with {done.returncode}: {last}")
    version = done.stdout.strip()
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < LEAST_TORCH:
        least = ".".join(map(str, LEAST_TORCH))
        raise WrongRequest(f"--python {path} must have torch {least} or newer, and it has {version or 'none'}")
    return program


def _sweep(arguments: argparse.Namespace, names: Sequence[str]) -> Sweep:
    """Return the sweep of the duel, a race with A as the baseline; a control needs one environment.

    Without --sweep it is the product of the options, as in `pytest bench`: one point if each has one value.
    """
    usual = {} if arguments.sweep else {"bound": Effort.bound}
    asked = load_sweep(
        here(
            arguments.sweep or options.DEFAULT_SWEEP,
            implementations=names,
            control=not arguments.python,
            overrides=options.overrides(arguments),
            effort={"race": True, **usual, **options.effort(arguments)},
            product=arguments.sweep is None,
            path=None if arguments.python else search_path(),
            shaped=shaped,
        )
    )
    if not arguments.python:  # each interpreter finds its own
        options.check_layers(asked)
    return dataclasses.replace(asked, name=f"duel-{asked.name}", implementations=tuple(names), baseline=names[0])


def _introduction(duel: Run | Pair) -> Iterator[str]:
    """Yield the lines on the sides."""
    if isinstance(duel, Pair):
        yield from _environments(duel.implementation, *duel.environments)
    else:
        a, b = duel.sweep.implementations
        yield f"A is {a}, B is {b}, both with torch {duel.environment.identity['torch']}"


def _environments(implementation: str, a: Environment, b: Environment) -> Iterator[str]:
    """Yield the lines on two environments: of each its torch and the user's own modules, and in what they differ.

    If they differ in nothing, a line says which modules both find in this folder.
    """
    for side, of in zip(SIDES, (a, b), strict=True):
        yield f"{side} is {implementation} with torch {of.identity['torch']}, Python {of.identity['python']}"
        yield from (f"  {name} from {_place(module)}" for name, module in _modules(of).items() if _is_own(module))
    of_a, of_b = _modules(a), _modules(b)
    pairs = {name: (of_a.get(name, ABSENT), of_b.get(name, ABSENT)) for name in sorted({*of_a, *of_b})}
    code = [
        f"{name}: {one['file']} against {other['file']}"
        for name, (one, other) in pairs.items()
        if one["digest"] != other["digest"]
    ]
    differing = "; ".join([*differences(a, b), *code])
    yield f"A and B differ in: {differing or 'nothing that was found, so this is an A/A'}"
    here = [name for name, module in of_a.items() if not module["file"].startswith(os.pardir)]
    if here and not differing:
        yield f"Both import {', '.join(here)} from this folder; start elsewhere if each interpreter has its own"


def _modules(of: Environment) -> dict[str, dict[str, str]]:
    """Return the modules that a side's own names bring in, by name."""
    return dict(of.context.get("modules", {}))


def _is_own(module: Mapping[str, str]) -> bool:
    """Return whether a module is more than an installed package."""
    return bool(module["commit"]) or not {"site-packages", "dist-packages"} & {*Path(module["file"]).parts}


def _place(module: Mapping[str, str]) -> str:
    where = f"commit {module['commit']}" if module["commit"] else "not in git"
    return f"{module['file']}, {where}"
