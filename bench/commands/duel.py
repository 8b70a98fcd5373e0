"""Compare two sides, before and after: implementations, checkouts, environments, models or layers."""

import argparse
import contextlib
import dataclasses
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench.analyse.analysed_run import AnalysedRun
from bench.analyse.duel import Outcome, change
from bench.commands import in_format, options, put, say, write
from bench.commands.arguments import FORMATS
from bench.commands.progress import Progress, waiting
from bench.engine.duel import Duel, Ground, grounds
from bench.engine.model_look import shown
from bench.machine import monotonic
from bench.machine.facts import here
from bench.plan.case import AFTER, BEFORE
from bench.plan.columns import ValueKind, read
from bench.plan.errors import WrongRequest, refusing
from bench.plan.invocation import short, suite, without_options
from bench.plan.names import search_path
from bench.plan.sides import Side, sides_of
from bench.plan.statuses import BAD, FINE, UNMEASURED
from bench.plan.sweep import Sweep, load_sweep
from bench.plan.verdicts import NOT_MEASURED
from bench.show import doubts
from bench.show.comparison import duel as show
from bench.show.terminal.console import console
from bench.show.text import listed
from bench.store.table import of_rows

LEAST_TORCH = (2, 11)

PRINT_TORCH = "from importlib.metadata import distributions as d; print(*[t.version for t in d(name='torch')][:1])"
"""A program that prints the version of an interpreter's torch without importing it, or nothing without torch."""

BOUND, POINT_S = 0.01, 40.0
"""The precision of the ratio at the end of a duel, and the seconds that each point may take."""

PROCESSES, BUDGET_S = 2, 4.0
"""The replicates of a duel's base, and the seconds of rounds in all of them."""


def run(arguments: argparse.Namespace) -> int:
    """Measure a duel and print its verdict.

    BAD if the second side computes another function, if it is slower than `--allow`, or if a side could not be
    measured; with `--allow` also if outputs were not compared.
    """
    pythons = [_interpreter(path) for path in arguments.python]
    before, after = sides_of(arguments.names, arguments.layer, arguments.checkout, pythons)
    allow = None if arguments.allow is None else _allowed(arguments.allow)
    is_shared = not (before.checkout or before.python)
    checkouts = "checking out revisions, " if before.checkout else ""
    named = (before.layer, before.implementation, after.layer, after.implementation)
    modules = dict.fromkeys(name for name in named if ":" in name)
    with contextlib.ExitStack() as stack:
        with waiting(f"{checkouts}starting both sides (importing {listed(['torch', *modules])})"):
            trained = any(mode != "inference" for mode in options.overrides(arguments).get("mode", ()))
            servers = PROCESSES if is_shared else 1
            sides = stack.enter_context(grounds((before, after), servers, with_gradients=trained))
            first = _sweep(arguments, sides[0], (before, after))
            second = first if before.layer == after.layer else _sweep(arguments, sides[1], (before, after))
        if len(first.points) != len(second.points):
            raise WrongRequest("both layers must have the same points, but one has more; give columns that both take")
        folder = options.run_folder(arguments, first.name)
        with Duel(first, folder, sides, (first.points, second.points), allow) as duel:
            of = _measured(duel, is_quiet=arguments.format != FORMATS[0] and not arguments.to)
            weak = doubts.sentences(of_rows(duel.summary.all_rows()))
    return _put(of, weak, arguments, folder)


def _allowed(text: str) -> float:
    allow = float(read(ValueKind.SHARE, "--allow", text))
    if not 0 <= allow < 1:
        raise WrongRequest(f"--allow {text} must be a share from 0 to below 1, such as 2% or 0.02")
    return allow


def _measured(duel: Duel, *, is_quiet: bool) -> Outcome:
    """Measure a duel and show its progress; return its outcome, with the seconds of all sessions."""
    points, effort = duel.sweep.points, duel.sweep.effort
    progress = Progress(duel.sweep, points, console(stderr=is_quiet))
    try:
        progress.opened(duel.folder)
        progress.follow(duel)
        end_s = duel.end_s(len(points))
        [*duel.measured(points, progress.told)]
    finally:
        progress.close()
    spent_s = effort.seconds(len(points)) - max(0.0, end_s - monotonic.now_s())
    rows_at = {point: duel.summary.rows(point) for point in duel.summary}
    changes = [change(point, rows_at.get(point, ()), *duel.names, effort.bound) for point in points]
    return Outcome(changes, *duel.names, effort.bound, duel.allow, spent_s, duel.environment)


def _put(of: Outcome, weak: Sequence[str], arguments: argparse.Namespace, folder: Path) -> int:
    """Print a duel's outcome in the requested format, write its page, and return the exit status."""
    # with its run folder the same command would measure nothing new
    words = shlex.join(without_options(sys.argv[1:], "--run", "--report", "--to"))
    command = f"{short()} {words}"  # others read it, who have no such paths
    blocks = [*show.blocks(of, command, weak)]
    said = in_format(arguments.format, blocks, {"json": partial(show.as_json, of, command)})
    put(said, arguments.to, show.headline(of))
    if arguments.format == FORMATS[0]:
        say(f"Again: {suite()} {words}", f"results: {folder}")
    if arguments.report:
        from bench.show.pages import run as page  # slow to import

        write(arguments.report, page.page(AnalysedRun(folder), blocks))
    if of.verdict == NOT_MEASURED:
        return UNMEASURED
    return BAD if of.is_bad else FINE


def _interpreter(path: str) -> str:
    """Return the path of the interpreter in --python; raises WrongRequest if it is none or has no recent torch."""
    program = shutil.which(path)
    if program is None:
        found = "is a folder; name the program in it" if Path(path).is_dir() else "doesn't exist"
        raise WrongRequest(f"--python {path} must be a Python interpreter; it {found}")
    with refusing(f"--python {path} must be a Python interpreter"):
        done = subprocess.run([program, "-c", PRINT_TORCH], capture_output=True, text=True, check=False)
    if done.returncode:
        last = "".join(done.stderr.splitlines()[-1:])
        raise WrongRequest(f"--python {path} must be a Python interpreter; it exited with {done.returncode}: {last}")
    version = done.stdout.strip()
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < LEAST_TORCH:
        least = ".".join(map(str, LEAST_TORCH))
        raise WrongRequest(f"--python {path} must have torch {least} or newer, but it has {version or 'none'}")
    return program


def _sweep(arguments: argparse.Namespace, ground: Ground, sides: tuple[Side, Side]) -> Sweep:
    """Return the race of both sides with one side's points, the first side as the baseline, and a control.

    Without --sweep the points are the product of the options, as in `run`: one point if each has one value.
    """
    side, names = ground.side, tuple(each.name for each in sides)
    is_elsewhere = bool(side.checkout or side.python)
    columns = argparse.Namespace(**{**vars(arguments), "layer": side.layer or None})
    own = {"race": True, "bound": BOUND, "processes": PROCESSES, "budget_s": BUDGET_S}
    with ground.named() if side.name in (BEFORE, AFTER) else contextlib.nullcontext():
        asked_for = load_sweep(
            here(
                arguments.sweep or "",
                implementations=list(dict.fromkeys(each.implementation for each in sides)),
                control=True,
                overrides=options.overrides(columns),
                effort={**own, **options.effort(arguments)},
                product=arguments.sweep is None,
                path=None if is_elsewhere else search_path(),  # each checkout and interpreter finds its own modules
                look=partial(shown, ground.pool),
            )
        )
    within_s = POINT_S * len(asked_for.points) if arguments.within_s is None else asked_for.effort.within_s
    effort = dataclasses.replace(asked_for.effort, within_s=within_s)
    return dataclasses.replace(
        asked_for, name=f"duel-{asked_for.name}", implementations=names, baseline=names[0], effort=effort
    )
