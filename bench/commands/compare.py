"""Compare two runs by the speed of each row relative to the other implementations of its own run."""

import argparse
from functools import partial

from bench.analyse.comparable import unlike_conditions
from bench.analyse.comparison import compared, is_compared
from bench.commands import in_format, put, say
from bench.plan.columns import ValueKind, read
from bench.plan.errors import NotComparable
from bench.plan.statuses import BAD, FINE
from bench.plan.verdicts import named
from bench.show.comparison import report
from bench.show.doubts import control_warning


def run(arguments: argparse.Namespace) -> int:
    """Compare two runs; BAD if a row has a verdict of `--fail-on`."""
    failing, margin = named(arguments.fail_on), float(read(ValueKind.SHARE, "--margin", arguments.margin))
    base, new = arguments.base, arguments.new
    unlike = unlike_conditions(base, new)
    if unlike and not arguments.force:
        raise NotComparable(
            f"BASE and NEW were not measured under the same conditions: {'; '.join(unlike)}; "
            "--force compares them all the same"
        )
    changes = compared(base.table, new.table, margin=margin)
    if not is_compared(changes):
        raise NotComparable("BASE and NEW share no case with a speed-up on both sides besides the baseline")
    sides = (("BASE", base), ("NEW", new))
    doubts = [f"{side}: {words}" for side, of in sides if (words := control_warning(of.whole))]
    remarks, headline = [*doubts, *report.notes(base, new, changes)], report.headline(changes)
    if arguments.format == "csv":  # which has no place for them
        say(headline, *remarks, stderr=True)
    data = {
        "csv": partial(report.as_csv, changes),
        "json": partial(report.as_json, changes, unlike, remarks, margin),
    }
    blocks = report.blocks(changes, unlike, remarks, shows_all=arguments.all)
    put(in_format(arguments.format, blocks, data), arguments.to, headline)
    return BAD if any(change.verdict in failing for change in changes) else FINE
