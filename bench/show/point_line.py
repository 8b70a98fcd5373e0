"""The line of a point: what to use, what that can cost, its speed-up, and how many cases have no time."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pandas as pd

from bench.analyse.standing import by_rank
from bench.plan.case import Point
from bench.show.answer import At, speedup_cell
from bench.show.blocks import Column
from bench.show.choice_text import choice_of, words
from bench.show.point_text import LONGEST_NAME
from bench.show.rows import by_point, measured, unmeasured
from bench.show.terminal.console import style_of_choice
from bench.store import units

LEAST_WORDS = 12
"""The narrowest room for what to use."""


def columns(baseline: str | None) -> list[Column]:
    """Return the columns of a table with a line for each point; a narrow terminal has no intervals of speed-ups."""
    return [
        Column("point", lambda at: cut(at.label, LONGEST_NAME)),
        Column("what to use, and what it can cost", use, style=lambda at: style_of_choice(at.choice), fit=use),
        Column("speed-up", lambda at: _speedup(at, baseline)[0], interval=lambda at: _speedup(at, baseline)[1],
            interval_heading=f"over {baseline}" if baseline else "", interval_rank=1),
    ]  # fmt: skip


def use(at: At, width: float = float("inf")) -> str:
    """Return what to use at a point, as shortly as the width needs, and how many cases have no time."""
    failed = f" ({at.failed} not timed)" if at.failed else ""
    room = width - len(failed)
    return f"{cut(words(at.choice, room), room)}{failed}"


def _speedup(at: At, baseline: str | None) -> tuple[str, str]:
    value, _, interval = speedup_cell(at.first, baseline).partition(" ")
    return value, interval


def at_point(rows: pd.DataFrame, labels: Mapping[Point, str]) -> At:
    """Return what the rows of one point say; `labels` has the names of the points of the sweep."""
    ((point, members),) = by_point(rows).items()
    return At(point, labels.get(point, point.layer), tuple(members), choice_of(members))


def named(at: At, labels: Mapping[Point, str]) -> At:
    """Return a point under another name."""
    return replace(at, label=labels[at.point])


def log_line(at: At, position: int, total: int, left: str, baseline: str | None, width: int) -> str:
    """Return one line of a log on a point: `[3/12] N=577: fastest: sdpa, by 2 to 6%, 1.48x [1.40, 1.57] (~4m left)`.

    In a narrow log the name of the point is cut first, then what to use is said in fewer words.
    """
    ratio = speedup_cell(at.first, baseline)
    of = f", {ratio}" if ratio and ratio != "baseline" else ""
    tail = f"{of}{f'; {at.failed} not timed' if at.failed else ''}{f' (~{left} left)' if left else ''}"
    place = f"[{position:>{len(str(total))}}/{total}] "
    least = len(words(at.choice, 0))
    head = f"{place}{cut(at.label, max(LEAST_WORDS, width - len(place) - len(tail) - least - 2))}: "
    room = max(LEAST_WORDS, width - len(head) - len(tail))
    return cut(head + cut(words(at.choice, room), room) + tail, width)


def outcomes(at: At, baseline: str) -> Iterator[str]:
    """Yield each implementation of a point with its time and ratio, or how it ended, the one to use first."""
    for row in (*by_rank(measured(at.rows)), *unmeasured(at.rows)):
        name = str(row["implementation"])
        ratio = "baseline" if name == baseline else units.ratio(row["speedup"])
        numbers = (units.seconds(row["latency_s"]), ratio) if row["status"] == "ok" else (str(row["status"]),)
        yield " ".join(filter(None, (name, *numbers)))


def cut(text: str, width: float) -> str:
    """Return a text that fits into a width, with `…` at its end if a part is left out."""
    return text if len(text) <= width else f"{text[: max(0, int(width) - 1)]}…"
