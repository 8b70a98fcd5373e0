"""Join the shards of a sweep, from one machine or several, into one run."""

import argparse
from pathlib import Path

from bench.commands import FINE, say
from bench.engine.merge import merge


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "out", metavar="OUT", type=Path, help="the merged run: a new folder, or one of an earlier merge"
    )
    parser.add_argument("shards", metavar="SHARD", type=Path, nargs="+", help="a run folder")


def run(arguments: argparse.Namespace) -> int:
    """Merge runs, and print what each machine's run holds now."""
    done, notices = merge(arguments.out, arguments.shards)
    say(*(f"warning: {notice}" for notice in notices))
    for each in done:
        say(
            f"{each.folder}: {each.before + each.added} records of {each.points} of {each.planned} points on "
            f"{each.name}, {each.added} of them new"
        )
    return FINE
