"""Compare two runs by the speed of each row relative to the other implementations of its own run."""

import argparse
from functools import partial

from bench.analyse import comparison as comparing
from bench.analyse.comparable import unlike_conditions
from bench.commands import BAD, FINE, in_format, put, say
from bench.commands.arguments import COMPARE_FORMATS
from bench.plan.errors import NotComparable, WrongRequest
from bench.plan.verdicts import named
from bench.show.comparison import notes
from bench.show.comparison.report import Report, as_csv, as_json, blocks, headline
from bench.show.doubts import control_warning
from bench.stats.limits import Limits
from bench.store import saved_run
from bench.store.saved_run import SavedRun


def run(arguments: argparse.Namespace) -> int:
    """Compare two runs, machine by machine if one of them was merged; BAD if a row has a verdict of `--fail-on`."""
    failing = named(arguments.fail_on)
    pairs = _machines(arguments.base, arguments.new)
    if "" not in pairs and arguments.to:
        raise WrongRequest("--to takes the runs of one machine, such as the folders inside a merged run")
    regressed = False
    for env_id, (base, new) in pairs.items():
        if env_id:
            name = saved_run.name_of(new.environment) if new.environment else env_id
            say(f"machine {name}", stderr=arguments.format != COMPARE_FORMATS[0])
        report = _report(arguments, base, new)
        if arguments.format == "csv":  # which has no place for them
            say(headline(report), *report.notes, stderr=True)
        data = {"csv": partial(as_csv, report), "json": partial(as_json, report)}
        put(in_format(arguments.format, blocks(report), data), arguments.to, headline(report))
        regressed |= any(change.verdict in failing for change in report.changes)
    return BAD if regressed else FINE


def _machines(base: SavedRun, new: SavedRun) -> dict[str, tuple[SavedRun, SavedRun]]:
    """Return the runs of each machine in both by its env_id, or two runs of one machine each under an empty name.

    A run of one machine is compared with that machine's part of the other. Raises NotComparable if none is in both.
    """
    runs = [[*saved_run.runs_of(saved).values()] for saved in (base, new)]
    if all(len(side) == 1 for side in runs):
        return {"": (base, new)}
    before, after = ({run.environment.env_id if run.environment else "unknown": run for run in side} for side in runs)
    shared = {env_id: (before[env_id], after[env_id]) for env_id in before if env_id in after}
    if not shared:
        raise NotComparable(f"no machine is in both: BASE has {', '.join(before)}, NEW has {', '.join(after)}")
    return shared


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
