"""What is said while a sweep runs."""

import dataclasses
import re
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console
from rich.text import Text

from bench.analyse.standing import Answer
from bench.commands.progress import Progress
from bench.engine.run import Run
from bench.plan.case import Case, Point
from bench.plan.sweep import Effort, Sweep
from bench.show.terminal.console import THEME
from bench.store.record import Record
from tests.clock import Clock
from tests.make.points import point
from tests.make.records import record, samples
from tests.make.results import of_records

POINTS = (point(num_tokens=5), point(num_tokens=7))
SWEEP = Sweep("tiny", POINTS, ("eager", "sdpa", "mha"), effort=Effort(processes=2))
RACE = dataclasses.replace(SWEEP, effort=Effort(processes=2, race=True, bound=0.05))


def records(at: int) -> list[Record]:
    """Return what two processes measured at a point: sdpa takes half the time, mha can't."""
    measured = [
        record(case=Case(POINTS[at], name), process=process, samples=samples(value))
        for process in range(2)
        for name, value in {"eager": 2e-3, "sdpa": 1e-3 + process * 1e-6}.items()
    ]
    refused: dict[str, Any] = {"status": "unsupported", "samples": samples(), "detail": "needs more heads"}
    return [*measured, record(case=Case(POINTS[at], "mha"), **refused)]


def on(width: int = 80, height: int = 0) -> Console:
    """Return a console whose text `written` returns; a height makes it a terminal."""
    return Console(file=StringIO(), force_terminal=height > 0, width=width, height=height, highlight=False, theme=THEME)


def written(out: Console) -> str:
    """Return the output since the last call."""
    file = cast(StringIO, out.file)
    text = file.getvalue()
    file.truncate(file.seek(0))
    return text


class Shown:
    """The progress of a sweep on a console, which begins with the run, whose clock ends after 90 seconds."""

    def __init__(
        self, sweep: Sweep = SWEEP, *, height: int = 0, width: int = 80, folder: str = "there",
        done: tuple[Point, ...] = (),
    ) -> None:  # fmt: skip
        self.out = on(width, height)
        self.progress = Progress(sweep, sweep.points, self.out)
        self.progress.opened(Path(folder))
        rows = of_records(records(0) + records(1), "eager").rows
        warnings = ["the machine is busy"]
        run = SimpleNamespace(rows=rows, warnings=warnings, end_s=lambda _: 90.0, finished=lambda: done)
        self.progress.follow(cast(Run, run))

    def written(self) -> str:
        """Return the output since the last call, without colours."""
        return Text.from_ansi(written(self.out)).plain

    def told(self, at: int, answer: Answer | None = None) -> list[str]:
        """Report the answer at a point, or its end without one, and return the lines of points."""
        self.written()
        self.progress.told(POINTS[at], answer)
        return re.findall(r"^\[.*", self.written(), re.MULTILINE)


@pytest.mark.parametrize(
    ("sweep", "words"),
    [
        (dataclasses.replace(SWEEP, control=True), "3 implementations and control, 2 processes"),
        (RACE, "a race to 5% within 1m"),
        (
            dataclasses.replace(RACE, effort=Effort(processes=2, race=True, within_s=13, budget_s=4)),
            "warning: 13s may be too short for 2 points (about 14s); resume the run to measure the rest",
        ),
        (
            dataclasses.replace(RACE, effort=Effort(processes=2, race=True, within_s=14, budget_s=4)),
            "a race to 2% within 14s",
        ),
        (
            dataclasses.replace(RACE, points=POINTS[:1], effort=Effort(race=True, within_s=1)),
            "warning: 1s may be too short for 1 point (about 16s); the first one is always finished",
        ),
    ],
    ids=["control", "race", "too short", "long enough", "one point"],
)
def test_the_first_lines_say_what_is_measured_and_how(sweep: Sweep, words: str) -> None:
    """The control is counted beside the implementations; a race has its bound and time in place of processes."""
    assert words in " ".join(Shown(sweep).written().split())
    assert ("too short" in Shown(sweep).written()) == ("too short" in words)


@pytest.mark.parametrize("height", [0, 24])
def test_a_point_has_one_short_line_in_a_log_and_in_a_terminal(clock: Clock, height: int) -> None:
    """It says the point, what to use, its ratio, what failed, and the time left; a log has no line that moves."""
    shown = Shown(height=height, width=110)
    opened = shown.written()
    lines = []
    for at in (0, 1):
        clock.now_s += 60
        lines += shown.told(at)
    assert re.fullmatch(r"\[1/2\] N=5  sdpa, fastest, 2\.00?x \[.*\] eager; 1 not timed  \(1m left\)", lines[0])
    assert re.match(r"\[2/2\] N=7  sdpa, fastest", lines[1])
    assert "left" not in lines[1]
    assert ("━" in opened) == bool(height)


def test_the_bar_fits_the_terminal(clock: Clock) -> None:
    """It has the time left, the point and the current work in one line, which disappears at the end."""
    shown = Shown(width=60, height=8)
    clock.now_s += 60
    shown.told(0)
    clock.now_s += 20
    shown.progress.heard(POINTS[1], 1, "sdpa", "rounds")
    line = shown.written().rpartition("\r")[2].rstrip()
    assert len(line) <= 60
    assert line.endswith("about 1m20s left · N=7 · sdpa: rounds")
    shown.progress.close()
    assert written(shown.out).endswith("\x1b[2K")


OPEN = Answer("sdpa", 0.2, ("sdpa", "eager"), (2.0, 2.0), 2)
CLOSER = dataclasses.replace(OPEN, bound=0.1, replicates=3)
GOOD = Answer("sdpa", 0.01, replicates=4)


@pytest.mark.parametrize(
    ("answers", "before_the_end", "at_the_end"),
    [
        ([(0, OPEN), (1, OPEN), (0, CLOSER), (1, GOOD), (0, GOOD), (0, GOOD)], "[1 [2 [2 [1", ""),
        ([(0, GOOD), (1, GOOD)], "[1 [2", ""),
        ([(0, OPEN), (1, OPEN), (0, CLOSER)], "[1 [2", ""),
        ([(1, OPEN)], "[1", "[2"),
    ],
    ids=["answered", "at once", "never answered", "one point measured by itself"],
)
def test_a_point_of_a_race_has_a_line_after_its_base_and_another_once_its_answer_is_good(
    clock: Clock, answers: list[tuple[int, Answer]], before_the_end: str, at_the_end: str
) -> None:
    """It keeps its number, and has no line for replicates in between, and none at the end of the race."""
    shown = Shown(RACE)
    assert [line[:2] for answer in answers for line in shown.told(*answer)] == before_the_end.split()
    assert [line[:2] for at in (0, 1) for line in shown.told(at)] == at_the_end.split()


def left(shown: Shown, at: int, answer: Answer | None = None) -> str:
    """Return the time that is left by the line of a point that is told."""
    (line,) = shown.told(at, answer)
    found = re.search(r"\((\S+) left\)", line)
    return found[1] if found else ""


def test_a_race_has_as_long_as_its_clock_says_and_points_take_as_long_as_others_did(clock: Clock) -> None:
    """Once all are answered, or the time is over, nothing is left; a point of an earlier session says nothing."""
    clock.now_s = 30.0
    answered = Shown(RACE)
    assert [left(answered, 0, GOOD), left(answered, 1, OPEN), left(answered, 1, GOOD)] == ["1m", "1m", ""]
    clock.now_s = 100.0
    assert left(Shown(RACE), 0, OPEN) == ""
    shown = Shown(dataclasses.replace(SWEEP, points=(*POINTS, point(num_tokens=9))), done=POINTS[:1])
    assert left(shown, 0) == ""
    clock.now_s += 30.0
    assert left(shown, 1) == "30s"
