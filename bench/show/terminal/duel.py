"""A duel in the terminal: how fast B is relative to A at each point, which of them to use, and what failed."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.text import Text

from bench.show.answer import At, speedup_cell
from bench.show.choice_text import words
from bench.show.rows import UNTRIED, reason, unmeasured
from bench.show.terminal.console import PLAIN_WIDTH, table
from bench.show.terminal.styles import BAD, style_of_choice
from bench.show.terminal.summary import RATIO
from bench.store import units

UNMEASURED = "not measured"

TIME, BESIDE = 7, 21
"""The width of a time, and that of the number of processes with the spaces between all columns, in characters."""

LEGEND = (
    "as fast as: the ratio paired round by round, with its 95 % interval",
    "fastest: the other is shown to be slower, by so much. use: the other may be faster, by so much at most",
)


def render(points: Sequence[At], a: str, b: str, width: int = PLAIN_WIDTH) -> RenderableType:
    """Return the table of a duel of A and B with its legend; what to use is said as shortly as the width needs."""
    ratio = f"{b} as fast as {a}"
    cells = table("point", [escape(ratio), "what to use"], ["processes", escape(a), escape(b)])
    label = max(map(len, ("point", *(at.label for at in points))))
    room = width - label - max(RATIO, len(ratio)) - max(TIME, len(a)) - max(TIME, len(b)) - BESIDE
    for at in points:
        if is_measured(at, a, b):
            both = [row for name in (a, b) if (row := at.row(name))]
            said = Text(words(at.choice, room), style_of_choice(at.choice))
            times = [units.seconds(row["latency_s"]) for row in both]
            processes = str(min(row["processes"] for row in both))
            cells.add_row(Text(at.label), Text(speedup_cell(both[-1], a)), said, processes, *times)
        else:
            cells.add_row(Text(at.label), "", Text(UNMEASURED, BAD))
    failures = [Text(f"{at.label}: {line}", BAD) for at in points for line in _failures(at)]
    return Group(cells, *failures, *map(Text, LEGEND))


def is_measured(at: At, a: str, b: str) -> bool:
    """Return whether both sides were measured at a point."""
    return at.row(a) is not None and at.row(b) is not None


def _failures(at: At) -> Iterator[str]:
    """Yield why a side has no time, without one that was skipped because the other failed."""
    lost = unmeasured(at.rows)
    own = [row for row in lost if row["status"] not in UNTRIED]
    for row in own or lost:
        yield f"{row['implementation']} {row['status']}: {reason(row)}"
