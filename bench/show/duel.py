"""A duel: how fast B is relative to A at each point, which of them to use, and what failed."""

from collections.abc import Sequence

from bench.show import point_line
from bench.show.answer import At, speedup_cell
from bench.show.blocks import BAD, Block, Column, Lines, Table
from bench.show.failures import reasons
from bench.show.rows import UNTRIED, unmeasured
from bench.show.terminal import console
from bench.store import units

UNMEASURED = "not measured"

LEGEND = (
    "as fast as: the ratio paired round by round, with its 95 % interval",
    "fastest: the other is shown to be slower, by so much. use: the other may be faster, by so much at most",
)


def blocks(points: Sequence[At], a: str, b: str) -> list[Block]:
    """Return the table of a duel of A and B with its legend; what to use is said as shortly as the width needs."""

    def use(at: At, width: float = float("inf")) -> str:
        return point_line.use(at, width) if is_measured(at, a, b) else UNMEASURED

    def style(at: At) -> str:
        return console.style_of_choice(at.choice) if is_measured(at, a, b) else console.BAD

    def ratio(at: At) -> str:
        return speedup_cell(at.row(b), a) if is_measured(at, a, b) else ""

    def processes(at: At) -> str:
        both = [row["processes"] for name in (a, b) if (row := at.row(name))]
        return str(min(both)) if is_measured(at, a, b) else ""

    def time(name: str) -> Column:
        def text(at: At) -> str:
            row = at.row(name)
            return units.seconds(row["latency_s"]) if row and is_measured(at, a, b) else ""

        return Column(name, text, lambda _: None)

    columns = [
        Column("point", lambda at: at.label),
        Column(f"{b} as fast as {a}", ratio),
        Column("what to use", use, style=style, fit=use),
        Column("processes", processes, lambda _: None),
        time(a),
        time(b),
    ]
    failed = [f"{at.label}: {line}" for at in points for line in _failures(at)]
    return [Table(columns, points), Lines(failed, BAD), Lines(LEGEND)]


def is_measured(at: At, a: str, b: str) -> bool:
    """Return whether both sides were measured at a point."""
    return at.row(a) is not None and at.row(b) is not None


def _failures(at: At) -> list[str]:
    """Return why a side has no time, without one that was skipped because the other failed."""
    lost = unmeasured(at.rows)
    own = [row for row in lost if row["status"] not in UNTRIED]
    return [str(each) for row in own or lost for each in reasons([row])]
