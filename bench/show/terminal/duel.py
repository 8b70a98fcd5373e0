"""A duel in the terminal: a line for each interim look, and the table at the end."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bench.analyse.duel import Row
from bench.plan.case import POINT_COLUMNS, Point
from bench.show.point_text import differences, parts, varying
from bench.show.terminal.styles import BAD, GOOD, QUIET, WARNING
from bench.stats.limits import Limits
from bench.stats.sequential import OPEN, USUAL
from bench.store import units

WORDS = {"faster": "B faster", "slower": "B slower"}
STYLES = {"faster": GOOD, "slower": BAD, "inconclusive": WARNING, OPEN: QUIET}

UNMEASURED = "not measured"
ONLY_POINT = "the point"


def header(points: Sequence[Point]) -> str:
    """Return in words the values that all points of a duel share."""
    columns = varying(points)
    return " · ".join(parts(points[0], [name for name in POINT_COLUMNS if name not in columns]))


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
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("point", overflow="fold")
    table.add_column("B as fast as A", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for title in ("processes", "A", "B"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(row, columns))
    failures = [Text(f"{_point(row, columns)}: {row.detail}", BAD) for row in rows if not row.is_measured]
    return Group(table, *failures, *(Text(line) for line in legend(looks, limits)))


def legend(looks: Sequence[int], limits: Limits = USUAL) -> tuple[str, ...]:
    """Return what the verdicts mean if these looks were planned."""
    margin, bound, level = (units.percent(share, trim=True) for share in (limits.margin, limits.bound, limits.level))
    many = len(looks) > 1
    planned = ", ".join(map(str, looks))
    split = f", a {_ordinal(len(looks))} of it at each look (at {planned} processes)" if many else ""
    whole = ", however many looks were taken" if many else ""
    return (
        f"B as fast as A: the ratio paired round by round, with its 95 % interval over processes{whole}",
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


def _cells(row: Row, columns: set[str]) -> list[Text]:
    judgement = row.judgement
    if not row.is_measured:
        return [Text(_point(row, columns)), Text(""), Text(UNMEASURED, BAD), *[Text("")] * 3]
    verdict = Text(WORDS.get(judgement.verdict, judgement.verdict), STYLES.get(judgement.verdict, ""))
    times = (units.seconds(latency_s) for latency_s in row.latencies_s)
    return [Text(_point(row, columns)), Text(ratio(row)), verdict, Text(str(judgement.processes)), *map(Text, times)]


def _point(row: Row, columns: set[str]) -> str:
    return differences(row.point, columns) or ONLY_POINT


def _ordinal(count: int) -> str:
    return {2: "half", 3: "third", 4: "fourth"}.get(count, f"{count}th")
