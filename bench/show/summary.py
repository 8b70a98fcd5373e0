"""The line of a point and the end of a run: the answer, doubts, and where the files are."""

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
from bench.show.text import counted, memory_setting, symbols
from bench.store import units
from impls.catalogue import name_of

MOST_LINES = 40
"""The most lines at the end of a run for points and a user's own implementations; `show` has all points."""

WIDEST = 120
"""The widest end of a run, in characters."""


@dataclass(frozen=True)
class Line:
    """A line of a table of points: the implementation to use at one, or below it another of its rows."""

    at: At
    other: Row | None = None

    @property
    def row(self) -> Row | None:
        """The row that the line names, None without a time."""
        return self.at.first if self.other is None else self.other

    def label(self) -> str:
        """Return the point's name on its first line, else empty."""
        return self.at.label if self.other is None else ""

    def use(self) -> str:
        """Return the choice, or the other implementation."""
        return use(self.at.choice) if self.other is None else str(self.other["implementation"])


def blocks(
    whole: pd.DataFrame, baseline: str | None, planned: Sweep | None = None, *, is_brief: bool = False
) -> Iterator[Block]:
    """Yield the end of a run: the answer, a line for each point, failures, and doubts.

    `whole` is the table with the control's rows, `planned` is the run's plan.
    """
    points = say.points_of(whole, planned)
    if not is_brief:
        yield from answer_blocks(points, baseline)
        yield GAP
    yield from point_table(points, baseline)
    yield from failures.table(points, failures.BRIEF)
    yield Lines(doubts.sentences(whole), WARNING)


def answer_blocks(points: Sequence[At], baseline: str | None) -> Iterator[Lines]:
    """Yield why the baseline has no time, what to use, and where another is faster or the choice is undecided."""
    yield Lines(failures.of_baseline(points, baseline), BAD)
    for first, *rest in say.answers(points, baseline):
        yield Lines([first], HEAD)
        yield Lines(rest)


def point_table(points: Sequence[At], baseline: str | None, most: int = MOST_LINES) -> list[Block]:
    """Return a line for each point, the number of points left out, and the meaning of the columns.

    Below a point are measured rows of a user's own that aren't the one to use; in a run with one point, all rows.
    """
    begun, is_alone = [at for at in points if at.rows], len(points) == 1
    lines = [line for at in begun for line in _lines(at, alone=is_alone)]
    left = len({line.at.label for line in lines[most:] if line.other is None})
    within = _of_row(named("slowdown_high", baseline))
    notes = [WITHIN] * any(map(within.text, lines)) + [symbols([at.point for at in points])] * (not is_alone)
    notes += memory_setting([line.at.point for line in lines if line.row])
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
    """Return a column of rows as a column of lines."""
    return replace(column, text=lambda line: column.text(line.row) if line.row else "", number=column.number and right)


def _lines(at: At, *, alone: bool) -> list[Line]:
    """Return the lines of a point: what to use and a user's own rows, or all rows if the point is alone."""
    rows = [row for row in measured(at.rows) if alone or name_of(str(row["implementation"])).is_own]
    if at.choice.standing == UNDECIDED:
        return [*([] if alone else [Line(at)]), *(Line(at, row) for row in rows)]
    return [Line(at), *(Line(at, row) for row in rows if row["implementation"] != at.choice.name)]


def where(folder: Path, page: Path | None) -> str:
    """Return the path of the page, or of the folder without one, and the command that prints all rows."""
    return f"{page or folder}   all rows: {suite()} show {shlex.quote(str(folder))}"


def go_on(command: str, effort: Effort, points: Sequence[At], longer_s: float) -> list[str]:
    """Return the command that measures on if a point waits or is undecided, a race within `longer_s`; else nothing."""
    if not any(at.waits or at.choice.standing == UNDECIDED for at in points):
        return []
    if effort.race:
        return [f"Continue: {command} --within {math.ceil(longer_s)}s"]
    return [f"Continue: {command} --extend --processes {2 * effort.processes}"]


def log_line(at: At, position: int, total: int, left: str, baseline: str | None) -> str:
    """Return a point's line in a log: `[ 3/12] N=577  sdpa, within 0.9%, 1.08x [1.05, 1.12] eager (4m left)`."""
    ratio = speedup_cell(at.first, baseline) if at.choice.is_decided else ""
    of = f", {ratio} {baseline}" if ratio.endswith("]") else ""
    failed = f"; {at.failed} not timed" if at.failed else ""
    place = f"[{position:>{len(str(total))}}/{total}]"
    label = f"{at.label}  " if total > 1 else ""
    return f"{place} {label}{words(at.choice)}{of}{failed}{f'  ({left} left)' if left else ''}"
