"""Join the shards of a sweep into one run."""

import argparse

from bench.commands import say
from bench.engine.merge import merge
from bench.plan.statuses import FINE


def run(arguments: argparse.Namespace) -> int:
    """Merge runs, and print what the merged run holds now."""
    done = merge(arguments.out, arguments.shards)
    say(*(f"warning: {notice}" for notice in done.notices))
    say(
        f"{arguments.out}: {done.before + done.added} records of {done.points} of {done.planned} points, "
        f"{done.added} of them new"
    )
    return FINE
