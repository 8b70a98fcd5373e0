"""The first lines of a comparison: how the runs differ, what changed and by how much, and what they exclude."""

import math
from collections.abc import Iterator, Sequence

from bench.show.comparison.report import Report, excluded, signed_percent
from bench.show.point_text import counted
from bench.show.rows import Row
from bench.stats.limits import CHANGED, INCONCLUSIVE
from bench.store import units

CLAIM = 10
"""The number of processes that is advised if a side has one."""

NAMED = 3
"""The number of changed rows that are named, the worst first."""


def headline(report: Report) -> list[str]:
    """Return the first lines of a comparison: in which runs identical code differs, how they differ, what changed."""
    return [*report.doubts, *_unlike(report), "; ".join(_findings(report))]


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
    """Yield what changed, else the largest change that nearly all rows exclude."""
    rows = report.rows
    kinds = {
        verdict: [row for row in rows if row["verdict"] == verdict] for verdict in ("slower", "newly failing", "faster")
    }
    for what, affected in kinds.items():
        if affected:
            yield _named(affected, f"{'is' if len(affected) == 1 else 'are'} {what}", report)
    judged = report.judged
    if not judged:
        yield from _nothing_judged(report)
        return
    left = [row for row in judged if row["verdict"] not in CHANGED]
    if not left:
        return
    if not any(row["verdict"] == INCONCLUSIVE for row in left):
        others = "every other judged row" if len(left) < len(judged) else "every judged row"
        yield f"{others} is equivalent, within {units.percent(report.limits.bound, trim=True)}"
        return
    bound, number = excluded(left)
    others = f"{len(left)}{' other' if len(left) < len(judged) else ''} {'row' if len(left) == 1 else 'rows'}"
    yield f"no change above {bound} in {number} of {others}" if bound else f"{others}: the scatter excludes no change"


def _nothing_judged(report: Report) -> Iterator[str]:
    """Yield why no row was judged."""
    sides = [row[f"{side}_processes"] for row in report.rows for side in ("base", "new")]
    if any(row["change"] is not None for row in report.rows) and 1 in sides:
        yield f"1 process on a side shows no change: measure both runs with --processes {CLAIM}"
    else:
        yield "no row was judged"


def _named(affected: Sequence[Row], what: str, report: Report) -> str:
    """Return the number of affected rows, and the worst by name."""
    worst = sorted(affected, key=lambda row: -abs(math.log(row["change"])) if row["change"] else 0.0)
    names = []
    for row in worst[:NAMED]:
        by = signed_percent(row["change"]) if row["verdict"] in CHANGED else ""
        names.append(" ".join(filter(None, (row["implementation"], report.point(row), by))))
    others = ["…"] if len(affected) > NAMED else []
    return f"{counted([len(affected)], 'row', 'rows')} {what}: {', '.join([*names, *others])}"
