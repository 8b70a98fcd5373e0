"""Check outputs and gradients without timing: `run --check`."""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence

from bench.analyse.rows import Row
from bench.commands import put, say
from bench.commands.progress import START
from bench.engine.pool import scratch
from bench.machine.signals import held
from bench.plan.statuses import BAD, FINE, INTERRUPTED
from bench.plan.sweep import Sweep
from bench.show import failures
from bench.show.answer import At
from bench.show.blocks import HEAD, QUIET, Block, Column, Lines, Table, right
from bench.show.text import LONGEST_NAME, counted, names, share_of
from bench.store import units

MOST = 10.0
"""The largest error that is written out, as a share of the tolerance."""


def checked(sweep: Sweep, fail_on: tuple[str, ...] | None) -> int:
    """Check each case of a sweep in one process, print what is correct, and keep nothing.

    Returns BAD if a case is incorrect, if none is correct, or if one fails as in a run. Raises WrongRequest if the
    device is missing.
    """
    with held():
        from bench.engine.run import Run  # slow to import

    # the fewest rounds, because outputs of timed calls are checked too
    shortest = dataclasses.replace(sweep.effort, race=False, processes=1, budget_s=0.0, within_s=None)
    sweep = dataclasses.replace(sweep, effort=shortest, control=False)
    labels, points = names(sweep.points, LONGEST_NAME), list[At]()
    say(f"{START} …")
    try:
        with scratch() as folder, Run(sweep, folder / "run") as run:
            for number, point in enumerate(run.measured(), 1):
                points.append(At(point, labels[point], tuple(run.rows(point)), len(sweep.implementations)))
                say(f"[{number:>{len(str(len(labels)))}}/{len(labels)}] {labels[point]}  {_counts(points[-1].rows)}")
    except KeyboardInterrupt:
        say("Interrupted; a check keeps nothing.")
        return INTERRUPTED
    put(_blocks(points, sweep.implementations))
    statuses = {row["status"] for at in points for row in at.rows}
    is_wrong = fail_on is None and ("incorrect" in statuses or "ok" not in statuses)
    fails = (failures.failing(at.rows, fail_on, lacks_device=False, baseline=sweep.baseline) for at in points)
    return BAD if is_wrong or any(fails) else FINE


def _counts(rows: Sequence[Row]) -> str:
    """Return how many cases ended how: `6 correct, 1 unsupported`."""
    number = Counter("correct" if row["status"] == "ok" else row["status"] for row in rows)
    return ", ".join(f"{count} {status}" for status, count in number.most_common())


def _blocks(points: Sequence[At], implementations: Sequence[str]) -> Iterator[Block]:
    """Yield how many cases are incorrect, the largest error of each implementation, and why cases aren't correct."""
    rows = [row for at in points for row in at.rows]
    of = {name: [row for row in rows if row["implementation"] == name] for name in implementations}
    correct = {name: sum(row["status"] == "ok" for row in of[name]) for name in of}
    wrong, cases = sum(row["status"] == "incorrect" for row in rows), counted(len(rows), "case")
    if wrong:
        yield Lines([f"Incorrect: {wrong} of {cases}."], HEAD)
    elif any(correct.values()):
        yield Lines([f"Correct: {sum(correct.values())} of {cases}; none is incorrect."], HEAD)
    else:
        yield Lines([f"Nothing was checked: none of {cases} is ok."], HEAD)
    columns = [
        Column("implementation", str, folds=True),
        Column("correct", lambda name: share_of(correct[name], len(of[name])), right),
        Column("largest error", lambda name: _error(of[name]), right),
    ]
    yield Table(columns, implementations)
    yield Lines(["largest error: as a share of the tolerance; above 100% is incorrect"], QUIET)
    yield from failures.table(points, failures.BRIEF)[1:]


def _error(rows: Sequence[Row]) -> str:
    """Return the largest share of the tolerance that an error takes; empty if no outputs were compared."""
    shares = [row["error"] / row["tolerance"] for row in rows if row["error"] is not None and row["tolerance"]]
    if not shares:
        return ""
    return units.percent(max(shares)) if max(shares) <= MOST else f"over {units.percent(MOST)}"
