"""Measure which changes this machine can detect, and keep the result for later runs."""

import argparse
import time

from bench.analyse.selfcheck import as_state, findings
from bench.commands import BAD, FINE, say
from bench.engine import trials as engine
from bench.engine.run import Run
from bench.harness import options
from bench.machine import facts as store
from bench.machine.facts import default_threads, physical_cores
from bench.plan.errors import WrongRequest
from bench.show.terminal import selfcheck as show
from bench.show.terminal.console import console, render
from bench.store import units


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_option = parser.add_argument
    options.add_run(add_option, "<UTC time>-selfcheck")
    add_option("--threads", metavar="N,N,…", help="threads (default: 1, physical cores - 1, and all physical cores)")
    add_option(
        "--limit-s",
        type=float,
        default=engine.SELFCHECK_S,
        metavar="S",
        help=f"seconds; no process is begun that would end later (default: {engine.SELFCHECK_S:g})",
    )


def run(arguments: argparse.Namespace) -> int:
    """Measure a self-check, print and keep it; BAD if the copy differs from eager by more than chance explains."""
    began = time.monotonic()
    sweep = engine.selfcheck_sweep(_threads(arguments.threads))
    with Run(sweep, options.run_folder(arguments, sweep.name), servers=1) as opened:
        version = opened.environment.identity["torch"]
        say(f"eager against a copy of itself and sdpa, torch {version}, into {opened.folder}")
        say(*(f"warning: {warning}" for warning in opened.warnings))
        for number in engine.measure_selfcheck(opened, arguments.limit_s - (time.monotonic() - began)):
            say(show.progress_line(number, sweep.effort.processes, time.monotonic() - began))
        checked = findings(engine.measured_records(opened), "eager", engine.TWIN)
        if checked:
            console().print(render(show.blocks(checked)))
            path = store.remember_selfcheck(opened.environment.env_id, as_state(checked))
            say(f"Remembered in {path}: later runs here carry it in their environment.json.")
        else:
            say("eager or its copy could not be measured: see results.csv")
    say(f"It took {units.duration(time.monotonic() - began)}.")
    return FINE if checked and all(finding.is_sound for finding in checked) else BAD


def _threads(text: str | None) -> list[int]:
    if text is None:
        return sorted({1, default_threads(), physical_cores()})
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise WrongRequest(f"--threads {text} must be whole numbers separated by commas") from None
