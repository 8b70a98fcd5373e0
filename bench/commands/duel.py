"""Measure two implementations, or one in two environments, side by side."""

import argparse
import dataclasses
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence

from rich.live import Live

from bench.analyse.duel import Row
from bench.commands import BAD, FINE, say
from bench.engine.duel import Look, Together, fight
from bench.engine.two_environments import SIDES, Pair
from bench.harness import options
from bench.plan.errors import WrongRequest
from bench.plan.sweep import Sweep, load_sweep
from bench.show.point_text import counted, shared
from bench.show.terminal import duel as show
from bench.show.terminal.console import console
from bench.stats.limits import Limits
from bench.stats.sequential import LOOKS, USUAL, check_looks
from bench.store.environment import differences
from bench.store.machine import default_allocator, default_threads

LEAST_TORCH = (2, 11)

PRINT_TORCH = "from importlib.metadata import distributions as d; print(*[t.version for t in d(name='torch')][:1])"
"""The program that prints the version of an interpreter's torch, and nothing if it has none; it imports no torch."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_option = parser.add_argument
    add_option("implementations", metavar="IMPL", nargs="+", help="A and B; one alone with two --python")
    add_option(
        "--python",
        metavar="PATH",
        action="append",
        default=[],
        help="an interpreter with its own torch; give it twice, for A and for B",
    )
    add_option("--sweep", default="article", metavar="NAME|FILE.toml", help="the points (default: article)")
    options.add_run(add_option, "<UTC time>-duel-<sweep>")
    options.add_columns(add_option)
    add_looks(add_option)
    add_option(
        "--budget-s",
        type=float,
        metavar="S",
        help="seconds for the rounds of a point up to the last look (default: in each process, the sweep's share)",
    )
    options.add_timeout(add_option)


def add_looks(add_option: options.AddOption) -> None:
    """Add the option that names the looks."""
    looks = ",".join(map(str, LOOKS))
    add_option(
        "--looks",
        metavar="K,K,…",
        default=looks,
        help=f"numbers of processes at which rows are judged (default: {looks})",
    )


def run(arguments: argparse.Namespace) -> int:
    """Measure a duel and print it; BAD if a side could not be measured at some point."""
    looks = planned(arguments.looks)
    names, pythons = _sides(arguments)
    sweep = _sweep(arguments, names, looks)
    folder = options.run_folder(arguments, sweep.name)
    duel = Pair(sweep, folder, pythons) if pythons else Together(sweep, folder, servers=1, needs_all=True)
    with duel:
        rows = run_duel(duel, looks)
    where = f"{' and '.join(SIDES)} in {folder}" if pythons else str(folder)
    say(f"Everything is in {where}: results.csv, journal.jsonl, environment.json.")
    return FINE if all(row.is_measured for row in rows) else BAD


def run_duel(duel: Pair | Together, looks: Sequence[int], limits: Limits = USUAL) -> list[Row]:
    """Return the rows of a duel, measured until all are decided; print the progress and the table.

    A terminal also shows the process that is measuring.
    """
    say(*_introduction(duel, looks))
    began, out = time.monotonic(), console()
    look = Look(0, [])
    with Live(console=out, auto_refresh=False, transient=True) as live:  # no spinner, which would take the core's time

        def begun(process: int, next_look: int, points: int) -> None:
            still_open = counted([points], "open point", "open points")
            live.update(f"process {process} of {next_look}, {still_open}", refresh=True)

        for look in fight(duel, duel.sweep.points, looks, limits, begun):
            out.print(show.look_line(look.processes, time.monotonic() - began, look.rows), soft_wrap=True, markup=False)
    console().print(show.render(look.rows, looks, limits))
    return look.rows


def planned(text: str) -> list[int]:
    """Return the looks in a comma list; raises WrongRequest if they are not valid."""
    try:
        looks = [int(word) for word in text.split(",")]
    except ValueError:
        raise WrongRequest(f"--looks {text} must be whole numbers separated by commas") from None
    check_looks(looks)
    return looks


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


def _sweep(arguments: argparse.Namespace, names: Sequence[str], looks: Sequence[int]) -> Sweep:
    """Return the sweep of the duel, with A as the baseline and as many processes as the last look has."""
    asked = load_sweep(
        arguments.sweep,
        threads=default_threads(),
        allocator=default_allocator(),
        implementations=names,
        control=False,
        overrides=options.overrides(arguments),
        effort={"race": False, **options.effort(arguments, ("budget_s", "timeout_s", "oversubscribe"))},
    )
    effort = asked.effort
    budget_s = effort.budget_s if arguments.budget_s is not None else effort.budget_s / effort.processes * looks[-1]
    return dataclasses.replace(
        asked,
        name=f"duel-{asked.name}",
        implementations=tuple(names),
        baseline=names[0],
        effort=dataclasses.replace(effort, processes=looks[-1], budget_s=budget_s),
    )


def _introduction(duel: Pair | Together, looks: Sequence[int]) -> Iterator[str]:
    """Yield the lines on the sides, the points to measure, the folder and the warnings."""
    sweep, effort = duel.sweep, duel.sweep.effort
    if isinstance(duel, Pair):
        for side, of in zip("AB", duel.environments, strict=True):
            facts = f"torch {of.identity['torch']}, Python {of.identity['python']}"
            yield f"{side} is {sweep.implementations[0]} with {facts}"
        yield f"A and B differ in: {'; '.join(differences(*duel.environments)) or 'nothing, this is an A/A'}"
    else:
        a, b = sweep.implementations
        yield f"A is {a}, B is {b}, both with torch {duel.environment.identity['torch']}"
    yield f"sweep {sweep.name}: {counted([len(sweep.points)], 'point', 'points')}, {shared(sweep.points)}"
    rounds_s = effort.budget_s / effort.processes
    yield f"looks at {', '.join(map(str, looks))} processes, {rounds_s:.2g} s of rounds for a point in each"
    yield f"results go to {duel.folder}"
    yield from (f"warning: {warning}" for warning in duel.warnings)
