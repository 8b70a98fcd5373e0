"""A duel in the terminal: a line for each look, and the table at the end."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bench.analyse.duel import Row
from bench.plan.case import POINT_COLUMNS, Point
from bench.show import units
from bench.show.styles import BAD, GOOD, QUIET, WARNING
from bench.show.words import differences, parts, varying
from bench.stats.limits import Limits
from bench.stats.sequential import OPEN, USUAL

WORDS = {"faster": "B faster", "slower": "B slower"}
STYLES = {"faster": GOOD, "slower": BAD, "inconclusive": WARNING, OPEN: QUIET}

UNMEASURED = "not measured"
ONLY_POINT = "the point"


def header(points: Sequence[Point]) -> str:
    """Return what all points of a duel share, in words."""
    columns = varying(points)
    return " · ".join(parts(points[0], [name for name in POINT_COLUMNS if name not in columns]))


def look_line(processes: int, elapsed_s: float, rows: Sequence[Row]) -> str:
    """Return one line on a look: how much is decided, and what is known of what isn't."""
    columns = varying(row.point for row in rows)
    unsettled = [row for row in rows if not row.is_decided]
    decided = f"{len(rows) - len(unsettled)} of {len(rows)} decided"
    cells = [f"{differences(row.point, columns)} {ratio(row)}".strip() for row in unsettled]
    said = [f"{processes:>2} processes, {units.duration(elapsed_s)}", decided, *(f"open: {cell}" for cell in cells)]
    return " | ".join(said)


def render(rows: Sequence[Row], looks: Sequence[int], limits: Limits = USUAL) -> RenderableType:
    """Return the table of a duel, and how its verdicts are to be read."""
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
    """Return how the verdicts of so many looks are to be read."""
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
    found = row.judgement
    if units.is_missing(found.ratio):
        return ""
    interval = "" if units.is_missing(found.low) else f" [{found.low:.3f}, {found.high:.3f}]"
    return f"{found.ratio:.3f}x{interval}"


def _cells(row: Row, columns: set[str]) -> list[Text]:
    found = row.judgement
    if not row.is_measured:
        return [Text(_point(row, columns)), Text(""), Text(UNMEASURED, BAD), *[Text("")] * 3]
    verdict = Text(WORDS.get(found.verdict, found.verdict), STYLES.get(found.verdict, ""))
    times = (units.seconds(latency_s) for latency_s in row.latencies_s)
    return [Text(_point(row, columns)), Text(ratio(row)), verdict, Text(str(found.processes)), *map(Text, times)]


def _point(row: Row, columns: set[str]) -> str:
    return differences(row.point, columns) or ONLY_POINT


def _ordinal(count: int) -> str:
    return {2: "half", 3: "third", 4: "fourth"}.get(count, f"{count}th")
