"""The line of a point and the end of a run: what to use, what to mind, and where everything is."""

import math
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

import pandas as pd

from bench.analyse import forecast
from bench.analyse.standing import ALONE, NOTHING, Choice, by_rank
from bench.analyse.summary import Summary
from bench.plan.case import Point
from bench.plan.invocation import suite
from bench.plan.sweep import Effort, Sweep
from bench.show import answer as say
from bench.show import by_graph, doubts, failures, padding
from bench.show.answer import At, speedup_cell, tone, words
from bench.show.blocks import BAD, GAP, HEAD, PLAIN, QUIET, WARNING, Block, Column, Lines, Table, right
from bench.show.failures import reasons
from bench.show.rows import Row, measured, reason, unmeasured
from bench.show.text import LONGEST_NAME, counted, cut, listed, middle, names, symbols
from bench.store import units
from impls.catalogue import name_of

MOST_LINES = 40
"""The most lines of points and of a user's own implementations there; show has all points."""

MOST_DOUBTS = 3
"""The most doubts about measured cases that are said in words at the end."""

WIDEST = 120
"""The end of a run takes no more of a wide terminal."""

LONGEST_REASON = 500
"""The reason of a failure is cut to this number of characters; the long table has all of it."""

WHAT_BOUNDS_SAY = (
    f"{say.FASTEST_MEANS}. use: others may be faster, by so much at most. {say.OF_RATIOS}, and of this run: on another "
    "day, the ratio of two kernels can differ by 1 to 5 %."
)
"""What the bounds say."""

LEAST_WORDS = 12
"""The narrowest room for what to use."""

LEAST_NAME, USUAL_NAME = 8, 24
"""The fewest characters of a shortened name, and those that the name of a point in a log leaves to it."""


def blocks(whole: pd.DataFrame, baseline: str | None, planned: Sweep | None = None) -> Iterator[Block]:
    """Yield the end of a run: the answer, a line for each point, failures, and warnings.

    `whole` is the table with the rows of the control, `planned` is the run's plan.
    """
    points = say.points_of(whole, planned)
    labels = names([at.point for at in points], LONGEST_NAME)
    yield Lines([cut(line, LONGEST_REASON) for line in failures.of_baseline([at.rows for at in points], baseline)], BAD)
    yield Lines([" ".join(say.answer(points, baseline))], HEAD)
    yield GAP
    begun = [replace(at, label=labels[at.point]) for at in points if at.rows]
    shown = begun[: _most(begun)]
    yield Table(point_columns(baseline), point_lines(shown))
    yield Lines([symbols([at.point for at in points]), WHAT_BOUNDS_SAY], QUIET)
    if len(begun) > len(shown):
        yield Lines([f"… and {counted(len(begun) - len(shown), 'more point')}"])
    yield Lines(padding.words(points), HEAD)
    yield Lines(by_graph.words(whole, baseline))
    if any(at.failed or at.waits for at in points):
        yield Lines([failures.sentence(points)], WARNING)
        tried = [row for at in points for row in at.rows if row["status"] not in ("ok", "skipped")]
        why = failures.told(reasons(tried), labels)
        yield Lines([cut(line, LONGEST_REASON) for line in why], BAD, is_list=True, indent=2)
    yield Lines(_doubts(points)[:MOST_DOUBTS], WARNING)
    is_quiet, machine = doubts.machine(whole)
    yield Lines([machine] if machine else [], PLAIN if is_quiet else WARNING)
    if any(at.choice.standing not in (ALONE, NOTHING) or not at.failed for at in begun):  # else failures are the cause
        yield Lines([*doubts.advice(whole)], WARNING)


def _doubts(points: Sequence[At]) -> list[str]:
    """Return what is said of cases that were measured, such as that an import is slow, each once."""
    told = reasons(row for at in points for row in at.rows if row["status"] == "ok" and reason(row))
    return [f"{', '.join(each.names)}: {cut(each.detail, LONGEST_REASON)}" for each in told]


def where(folder: Path, page: Path | None) -> list[str]:
    """Return where the page is, or the folder without one, and the commands that go on from there."""
    path = shlex.quote(str(folder))
    return [
        f"The page: {page}" if page else f"Everything is in {folder}",
        f"The long table: {suite()} show {path}",
    ]


def go_on(command: str, effort: Effort, summary: Summary, points: Sequence[Point]) -> list[str]:
    """Return which points wait, and the command that goes on until each has a good answer; none if all have one."""
    labels, others = names(points, LONGEST_NAME), forecast.waiting(summary, points)
    lines = [f"Not measured in this time: {listed([labels[point] for point in others])}"] if others else []
    if effort.race:
        within_s = forecast.within_s(summary, points)
        return [*lines, f"Go on: {command} --within {within_s}s"] if within_s else []
    number = forecast.processes(summary, effort.processes)
    return [f"Go on: {command} --extend --processes {number}"] if number else []


@dataclass(frozen=True)
class PointLine:
    """A line of a table of points: what to use at one, or below it an implementation of a user's own."""

    at: At
    own: str = ""

    @property
    def row(self) -> Row | None:
        """The row of what the line names, None if it has no time."""
        return self.at.row(self.own) if self.own else self.at.first

    def words(self, width: float = math.inf) -> str:
        """Return what to use, or the name of the own implementation and how it ended, in so many characters."""
        if not self.own:
            return use(self.at, width)
        ends = [f": {row['status']}" for row in unmeasured(self.at.rows) if row["implementation"] == self.own]
        end = "".join(ends[:1])
        return f"  {middle(self.own, max(LEAST_NAME, width - len(end) - 2))}{end}"


def point_lines(points: Iterable[At]) -> list[PointLine]:
    """Return the lines of points: below each the implementations of a user's own that aren't the one to use."""
    return [
        line
        for at in points
        for line in (PointLine(at), *(PointLine(at, name) for name in _own(at) if name != at.choice.name))
    ]


def _own(at: At) -> list[str]:
    rows = (*by_rank(measured(at.rows)), *unmeasured(at.rows))
    return [name for row in rows if name_of(name := str(row["implementation"])).is_own]


def _most(points: Sequence[At]) -> int:
    """Return how many of the points have no more lines than MOST_LINES, at least 1."""
    lines = list(accumulate(len(point_lines([at])) for at in points))
    return max(1, sum(number <= MOST_LINES for number in lines))


def point_columns(baseline: str | None) -> list[Column]:
    """Return the columns of a table of `point_lines`: what to use has the room that the others leave, which stay."""
    return [
        Column("point", lambda line: "" if line.own else line.at.label, folds=True),
        Column("what to use, and what it can cost", PointLine.words, folds=True,
            tone=lambda line: PLAIN if line.own else tone(line.at.choice)),
        Column("latency", lambda line: units.seconds(line.row["latency_s"]) if line.row else "", right),
        Column("speed-up", lambda line: speedup_cell(line.row, baseline), right),
    ]  # fmt: skip


def use(at: At, width: float = math.inf) -> str:
    """Return what to use at a point, as shortly as the width needs, and how many cases have no time if there is room.

    What is too long even so has the name shortened in its middle.
    """
    failed = f" ({at.failed} not timed)" if at.failed else ""
    with_failed = words(at.choice, width - len(failed)) + failed
    return with_failed if len(with_failed) <= width else _fitting(at.choice, width)


def _fitting(of: Choice, width: float) -> str:
    said = words(of, width)
    if (beyond := len(said) - width) > 0:
        said = words(replace(of, name=middle(of.name, max(LEAST_NAME, len(of.name) - beyond))), width)
    return cut(said, width)


def log_line(at: At, position: int, total: int, left: str, baseline: str | None, width: int) -> str:
    """Return one line of a log on a point: `[3/12] N=577: fastest: sdpa, by 2 to 6%, 1.48x [1.40, 1.57] (~4m left)`.

    In a narrow log the name of the point is cut first, then what to use is said in fewer words.
    """
    ratio = speedup_cell(at.first, baseline)
    of = f", {ratio}" if ratio and ratio != "baseline" else ""
    tail = f"{of}{f'; {at.failed} not timed' if at.failed else ''}{f' (~{left} left)' if left else ''}"
    place = f"[{position:>{len(str(total))}}/{total}] "
    least = len(words(replace(at.choice, name=middle(at.choice.name, USUAL_NAME)), 0))
    head = f"{place}{cut(at.label, max(LEAST_WORDS, width - len(place) - len(tail) - least - 2))}: "
    room = max(LEAST_WORDS, width - len(head) - len(tail))
    return cut(head + _fitting(at.choice, room) + tail, width)
