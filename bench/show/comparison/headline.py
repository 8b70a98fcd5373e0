"""The first lines of a comparison: which runs are unproven, how they differ, the counts of verdicts, their meaning."""

import math
from collections.abc import Iterator, Sequence

from bench.show.comparison.report import Report, counts, signed_percent
from bench.show.point_text import counted
from bench.show.rows import Row
from bench.stats.limits import CHANGED, INCONCLUSIVE, JUDGED
from bench.stats.power import detectable_in
from bench.store import units

CLAIM = 10
"""The number of processes that is advised for small changes; if both runs have it, twice their number."""

NAMED = 3
"""The number of changed rows that are named, the worst first."""

LOUD = 0.1
"""If CLAIM processes can't show a change of this size, a quieter machine is advised first."""


def headline(report: Report) -> list[str]:
    """Return the first lines of a comparison: which runs are unproven, how they differ, the counts, their meaning."""
    return [*report.unproven, *_unlike(report), f"{counts(report.rows)}: {'; '.join(_findings(report))}"]


def _unlike(report: Report) -> Iterator[str]:
    rows = report.rows
    if report.few_shared:
        only = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in ("missing", "new")}
        shared = len(rows) - sum(only.values())
        yield (
            f"BASE and NEW are different runs: they share {shared} of {len(rows)} cases; "
            f"{only['missing']} are in BASE alone and {only['new']} in NEW alone"
        )
    yield from report.unlike_runs


def _findings(report: Report) -> Iterator[str]:
    rows = report.rows
    slower, failing, faster, is_open = (
        [row for row in rows if row["verdict"] == verdict]
        for verdict in ("slower", "newly failing", "faster", INCONCLUSIVE)
    )
    for what, affected in (("slower", slower), ("newly failing", failing), ("faster", faster)):
        if affected:
            yield _named(affected, f"{'is' if len(affected) == 1 else 'are'} {what}", report)
    judged = [row for row in rows if row["verdict"] in JUDGED]
    if not judged:
        yield "no row was judged"
    elif not is_open and not (slower or faster):
        yield f"every judged row is equivalent, within {units.percent(report.limits.bound, trim=True)}"
    elif not (slower or faster):
        be = "is" if len(is_open) == 1 else "are"
        yield f"no row is shown to have changed, {len(is_open)} of {len(judged)} judged rows {be} {INCONCLUSIVE}"
    if 2 * len(is_open) > len(judged):
        yield from _power(report, is_open)


def _named(affected: Sequence[Row], what: str, report: Report) -> str:
    """Return the number of affected rows, and the worst by name."""
    worst = sorted(affected, key=lambda row: -abs(math.log(row["change"])) if row["change"] else 0.0)
    names = []
    for row in worst[:NAMED]:
        by = signed_percent(row["change"]) if row["verdict"] in CHANGED else ""
        names.append(" ".join(filter(None, (row["implementation"], report.point(row), by))))
    others = ["…"] if len(affected) > NAMED else []
    return f"{counted([len(affected)], 'row', 'rows')} {what}: {', '.join([*names, *others])}"


def _power(report: Report, is_open: Sequence[Row]) -> Iterator[str]:
    """Yield the size of changes that these runs can show, and what would show smaller ones."""
    sides = [row[f"{side}_processes"] for row in is_open for side in ("base", "new") if row[f"{side}_processes"]]
    if not sides:
        return
    fewest = min(sides)
    more = CLAIM if fewest < CLAIM else 2 * fewest
    if fewest < 2:
        yield f"1 process on a side shows no change: measure both runs with --processes {more}"
        return
    now, then = (detectable_in(report.comparison, processes) for processes in (fewest, more))
    if math.isnan(now):
        return
    quiet = "quiet the machine, and " if then > LOUD else ""
    yield (f"{fewest} processes on each side {_can_show(now)}, {more} {_can_show(then)}: {quiet}use --processes {more}")


def _can_show(change: float) -> str:
    if change > 1:
        return "can't even show a change of 100%"
    return f"can show changes of about {units.percent(change, trim=True)}"
