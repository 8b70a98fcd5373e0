"""The line of a point and the end of a run: what to use, what to mind, and where everything is."""

import math
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from bench.analyse.rows import Row
from bench.analyse.standing import UNDECIDED, by_rank
from bench.plan.invocation import suite
from bench.plan.sweep import Effort, Sweep
from bench.show import answer as say
from bench.show import doubts, failures
from bench.show.answer import At, speedup_cell, tone, use, within, words
from bench.show.blocks import BAD, GAP, HEAD, PLAIN, QUIET, WARNING, Block, Column, Lines, Table, right
from bench.show.columns import named, within_text
from bench.show.rows import measured
from bench.show.text import counted, symbols
from bench.store import units
from impls.catalogue import name_of

MOST_LINES = 40
"""The most lines of points and of a user's own implementations there; show has all points."""

WIDEST = 120
"""The end of a run takes no more of a wide terminal."""

WITHIN = "within: at most this much slower than the fastest (99% confidence, this run)"
"""What the column says."""


@dataclass(frozen=True)
class Line:
    """A line of a table of points: what to use at one, or below it another of its rows."""

    at: At
    other: Row | None = None

    @property
    def row(self) -> Row | None:
        """The row of what the line names, None if it has no time."""
        return self.at.first if self.other is None else self.other

    def label(self) -> str:
        """Return the name of the point on its first line."""
        return self.at.label if self.other is None else ""

    def use(self) -> str:
        """Return what to use, or the other implementation."""
        return use(self.at.choice) if self.other is None else str(self.other["implementation"])

    def within(self) -> str:
        """Return what it costs at most."""
        return within(self.at.choice) if self.other is None else within_text(self.other)


def blocks(whole: pd.DataFrame, baseline: str | None, planned: Sweep | None = None) -> Iterator[Block]:
    """Yield the end of a run: the answer, a line for each point, failures, and doubts.

    `whole` is the table with the rows of the control, `planned` is the run's plan.
    """
    points = say.points_of(whole, planned)
    yield from answer_blocks(points, baseline)
    yield GAP
    yield from point_table(points, baseline)
    yield from failures.table(points, failures.BRIEF)
    yield Lines(doubts.sentences(whole), WARNING)


def answer_blocks(points: Sequence[At], baseline: str | None) -> Iterator[Lines]:
    """Yield why the baseline has no time, what to use, and where another one is faster or nothing is decided."""
    yield Lines(failures.of_baseline(points, baseline), BAD)
    for first, *rest in say.answers(points, baseline):
        yield Lines([first], HEAD)
        yield Lines(rest)


def point_table(points: Sequence[At], baseline: str | None, most: int = MOST_LINES) -> list[Block]:
    """Return a line for each point, what its columns mean, and how many points are left out for others.

    Below a point stand measured rows of a user's own that aren't the one to use; of a run with one point, all rows.
    """
    begun, is_alone = [at for at in points if at.rows], len(points) == 1
    lines = [line for at in begun for line in (Line(at), *(Line(at, row) for row in _others(at, alone=is_alone)))]
    left = len({line.at.label for line in lines[most:] if line.other is None})
    columns = [
        *([] if is_alone else [Column("point", Line.label)]),
        Column(
            "implementation" if is_alone else "use",
            Line.use,
            tone=lambda line: PLAIN if line.other else tone(line.at.choice),
            folds=True,
        ),
        Column("within", Line.within, right),
        Column("latency", lambda line: units.seconds(line.row["latency_s"]) if line.row else "", right),
        Column(f"vs {baseline}" if baseline else "ratio", lambda line: speedup_cell(line.row, baseline)),
        *(Column(of.heading, _of_row(of), of.number and right, rank) for rank, of in enumerate(_WIDE, start=1)),
    ]
    return [
        Table(columns, lines[:most]),
        Lines([f"… and {counted(left, 'more point')}"] if left else []),
        Lines([WITHIN, *([] if is_alone else [symbols([at.point for at in points])])], QUIET),
    ]


_WIDE = (named("memory_bytes", None), named("kernels", None))
"""The columns of rows that a wide terminal and a page have."""


def _of_row(column: Column) -> Callable[[Line], str]:
    return lambda line: column.text(line.row) if line.row else ""


def _others(at: At, *, alone: bool) -> list[Row]:
    rows = by_rank(measured(at.rows))
    names = {str(row["implementation"]) for row in rows if alone or name_of(str(row["implementation"])).is_own}
    named = {at.choice.name} if at.choice.is_decided else set()
    return [row for row in rows if row["implementation"] in names - named]


def where(folder: Path, page: Path | None) -> str:
    """Return where the page is, or the folder without one, and the command that prints all rows."""
    return f"{page or folder}   all rows: {suite()} show {shlex.quote(str(folder))}"


def go_on(command: str, effort: Effort, points: Sequence[At]) -> list[str]:
    """Return the command that measures for as long again if a point waits or isn't decided; nothing otherwise."""
    if not any(at.waits or at.choice.standing == UNDECIDED for at in points):
        return []
    if effort.race:
        return [f"Go on: {command} --within {math.ceil(2 * effort.seconds(len(points)))}s"]
    return [f"Go on: {command} --extend --processes {2 * effort.processes}"]


def log_line(at: At, position: int, total: int, left: str, baseline: str | None) -> str:
    """Return one line of a log on a point: `[ 3/12] N=577  sdpa, within 0.9%, 1.08x [1.05, 1.12] eager (4m left)`."""
    ratio = speedup_cell(at.first, baseline) if at.choice.is_decided else ""
    of = f", {ratio} {baseline}" if ratio.endswith("]") else ""
    failed = f"; {at.failed} not timed" if at.failed else ""
    place = f"[{position:>{len(str(total))}}/{total}]"
    label = f"{at.label}  " if total > 1 else ""
    return f"{place} {label}{words(at.choice)}{of}{failed}{f'  ({left} left)' if left else ''}"
