"""Measure a sweep in shards on the nodes of a Slurm cluster."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.commands import FINE, say
from bench.engine import slurm
from bench.engine.slurm import Part
from bench.harness import options
from bench.plan.errors import WrongRequest
from bench.plan.sweep import Sweep
from bench.show.command_text import python


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_option = parser.add_argument
    add_option("sweep", metavar="SWEEP", help="a shipped sweep or a file")
    add_option("--nodes", type=int, required=True, metavar="N", help="the number of shards, each for one task")
    add_option("--at-once", type=int, metavar="M", help="the most tasks that run at a time (default: all)")
    add_option(
        "--with", dest="words", metavar="OPTIONS", default="", help='of the sweep, as --with="--impl eager,sdpa"'
    )
    add_option("--partition", metavar="NAME", help="the partition of Slurm (default: the cluster's own)")
    add_option("--run", type=Path, required=True, metavar="DIR", help="a folder that all nodes see")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--submit", action="store_true", help="submit the script too (default: only write it)")
    what.add_argument("--status", action="store_true", help="say what is measured, and write nothing")


def run(arguments: argparse.Namespace) -> int:
    """Write the script of what is missing, and submit it if asked; a second time it goes on with what is missing."""
    folder = arguments.run.resolve()
    if arguments.at_once is not None and arguments.at_once < 1:
        raise WrongRequest(f"--at-once {arguments.at_once} must be at least 1")
    if arguments.nodes < 1:
        raise WrongRequest(f"--nodes {arguments.nodes} must be at least 1")
    words = ["--sweep", _sweep_word(arguments.sweep), *shlex.split(arguments.words)]
    sweep = _sweep(words)
    found = slurm.parts(sweep, arguments.nodes, folder)
    say(*(_line(part) for part in found))
    merge = f"{python()} -m bench merge {shlex.quote(str(folder / 'merged'))} {shlex.quote(str(folder))}/shard-*"
    missing = [part for part in found if not part.is_done]
    if not missing:
        say(f"All {len(sweep.points)} points are measured. Join them: {merge}")
        return FINE
    if arguments.status:
        return FINE
    path = slurm.write(
        slurm.script(
            missing,
            folder,
            words,
            checkout=options.ROOT,
            python=sys.executable,
            at_once=arguments.at_once,
            partition=arguments.partition,
        ),
        folder,
    )
    say(f"{path} measures what is missing: {_in_words(missing, sweep)}.")
    if arguments.submit:
        say(f"submitted as job {slurm.submit(path)}; what is done: the same command with --status")
    else:
        say(f"Read and edit it, then: sbatch {shlex.quote(str(path))}")
    say(f"Then join the shards: {merge}")
    return FINE


def _sweep_word(name: str) -> str:
    """Return the name of a sweep, or the whole path of its file: tasks run in another folder."""
    return str(Path(name).resolve()) if name.endswith(".toml") else name


def _sweep(words: Sequence[str]) -> Sweep:
    """Return the sweep that words ask for, as `pytest bench` would; raises WrongRequest."""
    asked = options.parsed(words, "--with")
    for name in ("run", "shard", "extend"):
        if getattr(asked, name):
            raise WrongRequest(f"{options.flag(name)} can't stand in --with: the command sets it for each task")
    return options.sweep(asked)


def _line(part: Part) -> str:
    return f"shard {part.shard}: {part.measured} of {part.planned} points are measured ({part.folder.name})"


def _in_words(missing: Sequence[Part], sweep: Sweep) -> str:
    """Return how much a job does: its points and tasks, and about how many node hours their rounds take."""
    points = sum(part.planned - part.measured for part in missing)
    hours = points * sweep.effort.budget_s / 3600
    return (
        f"{points} points × {len(sweep.measured)} implementations × {sweep.effort.processes} processes in "
        f"{len(missing)} tasks; rounds take about {hours:.2g} node hours, starts and checks are added"
    )
