"""The line of a point and the end of a run: what to use, what to mind, and where everything is."""

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from bench.analyse.rows import Row, measured
from bench.analyse.standing import UNDECIDED
from bench.plan.invocation import suite
from bench.plan.sweep import Effort, Sweep
from bench.show import answer as say
from bench.show import doubts, failures
from bench.show.answer import At, speedup_cell, tone, use, words
from bench.show.blocks import BAD, GAP, HEAD, PLAIN, QUIET, WARNING, Block, Column, Lines, Table, right
from bench.show.columns import WITHIN, named
from bench.show.text import counted, symbols
from bench.store import units
from impls.catalogue import name_of

MOST_LINES = 40
"""The most lines of points and of a user's own implementations there; show has all points."""

WIDEST = 120
"""The end of a run takes no more of a wide terminal."""


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
    within = _of_row(named("slowdown_high", baseline))
    notes = [WITHIN] * any(map(within.text, lines)) + [symbols([at.point for at in points])] * (not is_alone)
    columns = [
        *([] if is_alone else [Column("point", Line.label)]),
        Column(
            "implementation" if is_alone else "use",
            Line.use,
            tone=lambda line: PLAIN if line.other else tone(line.at.choice),
            folds=True,
        ),
        within,
        Column("latency", lambda line: units.seconds(line.row["latency_s"]) if line.row else "", right),
        Column(f"vs {baseline}" if baseline else "ratio", lambda line: speedup_cell(line.row, baseline)),
        _of_row(named("memory_bytes", baseline, 1)),
        _of_row(named("kernels", baseline, 2)),
    ]
    return [
        Table(columns, lines[:most]),
        Lines([f"… and {counted(left, 'more point')}"] if left else []),
        Lines(notes, QUIET),
    ]


def _of_row(column: Column) -> Column:
    """Return a column of rows as one of lines."""
    return replace(column, text=lambda line: column.text(line.row) if line.row else "", number=column.number and right)


def _others(at: At, *, alone: bool) -> list[Row]:
    rows = measured(at.rows)
    names = {str(row["implementation"]) for row in rows if alone or name_of(str(row["implementation"])).is_own}
    named = set() if at.choice.standing == UNDECIDED else {at.choice.name}
    return [row for row in rows if row["implementation"] in names - named]


def where(folder: Path, page: Path | None) -> str:
    """Return where the page is, or the folder without one, and the command that prints all rows."""
    return f"{page or folder}   all rows: {suite()} show {shlex.quote(str(folder))}"


def go_on(command: str, effort: Effort, points: Sequence[At]) -> list[str]:
    """Return the command that measures for as long again if a point waits or isn't decided; nothing otherwise."""
    if not any(at.waits or at.choice.standing == UNDECIDED for at in points):
        return []
    if effort.race:
        return [f"Continue: {command} --within {math.ceil(2 * effort.seconds(len(points)))}s"]
    return [f"Continue: {command} --extend --processes {2 * effort.processes}"]


def log_line(at: At, position: int, total: int, left: str, baseline: str | None) -> str:
    """Return one line of a log on a point: `[ 3/12] N=577  sdpa, within 0.9%, 1.08x [1.05, 1.12] eager (4m left)`."""
    ratio = speedup_cell(at.first, baseline) if at.choice.is_decided else ""
    of = f", {ratio} {baseline}" if ratio.endswith("]") else ""
    failed = f"; {at.failed} not timed" if at.failed else ""
    place = f"[{position:>{len(str(total))}}/{total}]"
    label = f"{at.label}  " if total > 1 else ""
    return f"{place} {label}{words(at.choice)}{of}{failed}{f'  ({left} left)' if left else ''}"
