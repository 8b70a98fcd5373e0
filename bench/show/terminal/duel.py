"""A duel in the terminal: a line for each interim look, and the table at the end."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from bench.analyse.duel import Row
from bench.show.point_text import differences, varying
from bench.show.terminal.console import table
from bench.show.terminal.styles import BAD, GOOD, QUIET, WARNING
from bench.stats.limits import Limits
from bench.stats.sequential import OPEN, USUAL
from bench.store import units

WORDS = {"faster": "B faster", "slower": "B slower"}
STYLES = {"faster": GOOD, "slower": BAD, "inconclusive": WARNING, OPEN: QUIET}

UNMEASURED = "not measured"
ONLY_POINT = "the point"


def look_line(processes: int, elapsed_s: float, rows: Sequence[Row]) -> str:
    """Return one line on a look: how many rows are decided, and the ratios of the others."""
    columns = varying(row.point for row in rows)
    undecided = [row for row in rows if not row.is_decided]
    decided = f"{len(rows) - len(undecided)} of {len(rows)} decided"
    cells = [f"{differences(row.point, columns)} {ratio(row)}".strip() for row in undecided]
    words = [f"{processes:>2} processes, {units.duration(elapsed_s)}", decided, *(f"open: {cell}" for cell in cells)]
    return " | ".join(words)


def render(rows: Sequence[Row], looks: Sequence[int], limits: Limits = USUAL) -> RenderableType:
    """Return the table of a duel with its legend."""
    columns = varying(row.point for row in rows)
    cells = table("point", ["B as fast as A", "verdict"], ["processes", "A", "B"])
    failures = []
    for row in rows:
        point, verdict = differences(row.point, columns) or ONLY_POINT, row.judgement.verdict
        if row.is_measured:
            said = Text(WORDS.get(verdict, verdict), STYLES.get(verdict, ""))
            times = map(units.seconds, row.latencies_s)
            cells.add_row(Text(point), Text(ratio(row)), said, str(row.judgement.processes), *times)
        else:
            cells.add_row(Text(point), "", Text(UNMEASURED, BAD))
            failures.append(Text(f"{point}: {row.detail}", BAD))
    return Group(cells, *failures, *(Text(line) for line in legend(looks, limits)))


def legend(looks: Sequence[int], limits: Limits = USUAL) -> tuple[str, ...]:
    """Return what the verdicts mean if these looks were planned."""
    margin, bound, level = (units.percent(share, trim=True) for share in (limits.margin, limits.bound, limits.level))
    many = len(looks) > 1
    planned = ", ".join(map(str, looks))
    part = {2: "half", 3: "third", 4: "fourth"}.get(len(looks), f"{len(looks)}th")
    split = f", a {part} of it at each look (at {planned} processes)" if many else ""
    whole = ", however many looks were taken" if many else ""
    return (
        f"B as fast as A: the ratio paired round by round, with its 95 % interval{whole}",
        f"faster, slower: by more than {margin}; a wrong one has a chance of {level} in the whole table{split}",
        f"equivalent: within {bound}; inconclusive: neither is shown",
    )


def ratio(row: Row) -> str:
    """Return a row's ratio with its interval: `1.312x [1.290, 1.334]`."""
    judgement = row.judgement
    if units.is_missing(judgement.ratio):
        return ""
    interval = "" if units.is_missing(judgement.low) else f" [{judgement.low:.3f}, {judgement.high:.3f}]"
    return f"{judgement.ratio:.3f}x{interval}"
