"""Join the shards of a sweep, from one machine or several, into one run."""

import argparse

from bench.commands import say
from bench.engine.merge import merge
from bench.plan.statuses import FINE


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
