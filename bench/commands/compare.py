"""Compare two runs by the speed of each row relative to the other implementations of its own run."""

import argparse
from functools import partial

from bench.analyse import comparison as comparing
from bench.analyse.comparable import unlike_conditions
from bench.commands import in_format, put, say
from bench.plan.errors import NotComparable
from bench.plan.statuses import BAD, FINE
from bench.plan.verdicts import named
from bench.show.comparison import notes
from bench.show.comparison.report import Report, as_csv, as_json, blocks, headline
from bench.show.doubts import control_warning
from bench.stats.limits import Limits
from bench.store.saved_run import SavedRun


def run(arguments: argparse.Namespace) -> int:
    """Compare two runs; BAD if a row has a verdict of `--fail-on`."""
    failing, report = named(arguments.fail_on), _report(arguments, arguments.base, arguments.new)
    if arguments.format == "csv":  # which has no place for them
        say(headline(report), *report.notes, stderr=True)
    data = {"csv": partial(as_csv, report), "json": partial(as_json, report)}
    put(in_format(arguments.format, blocks(report), data), arguments.to, headline(report))
    return BAD if any(change.verdict in failing for change in report.changes) else FINE


def _report(arguments: argparse.Namespace, base: SavedRun, new: SavedRun) -> Report:
    limits, unlike = Limits(arguments.margin), unlike_conditions(base, new)
    if unlike and not arguments.force:
        raise NotComparable(
            f"BASE and NEW were not measured under the same conditions: {'; '.join(unlike)}; "
            "--force compares them all the same"
        )
    changes = comparing.compared(base.table, new.table, limits)
    if not comparing.is_compared(changes):
        raise NotComparable("BASE and NEW share no case with a speed-up on both sides besides the baseline")
    sides = (("BASE", base), ("NEW", new))
    doubts = tuple(f"in {side} {words}" for side, run in sides if (words := control_warning(run.whole)))
    said = (*doubts, *notes.about(base, new, changes))
    return Report(changes, limits, tuple(unlike), said, arguments.all)
