"""The progress of a sweep: a line for each point, and in a terminal a bar with the current case."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.commands import say
from bench.machine import monotonic
from bench.plan.case import BEFORE, CONTROL, POINT_COLUMNS, Point
from bench.plan.sweep import PROCESS_S, Effort, Sweep
from bench.show.text import LONGEST_NAME, counted, names, parts, varying
from bench.store import units

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Display
    from rich.progress import ProgressColumn

    from bench.analyse.standing import Answer
    from bench.engine.run import Run

SILENT_S = 1.0
"""The longest time that a command waits without a message."""

START = "starting workers (importing torch)"
"""The first thing that measuring commands wait for."""

BAR = 12
"""The width of the bar in characters."""

OFTEN_S = 0.2
"""The least seconds between two drawings of the bar, because drawing may disturb the measured processes."""


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say on stderr what a command waits for, if the body takes longer than a second."""
    timer = threading.Timer(SILENT_S, lambda: say(f"{what} …", stderr=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _display(console: "Console", *columns: "ProgressColumn") -> "Display":
    """Return a display that rewrites a line of a terminal in place: columns, and a text cut to the width.

    It disappears at the end. Return None for a log or a terminal that can't rewrite.
    """
    from rich.progress import Progress, TextColumn  # slow to import
    from rich.table import Column

    fitting = Column(no_wrap=True, overflow="ellipsis")
    return Progress(
        *(*columns, TextColumn("{task.description}", markup=False, table_column=fitting)),
        console=console,
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        disable=not console.is_terminal or console.is_dumb_terminal,
    )


@contextmanager
def moving(console: "Console") -> Iterator[Callable[[str], None]]:
    """Yield a function that rewrites one line of a terminal with the elapsed time and a text."""
    began_s = monotonic.now_s()
    with _display(console) as display:
        task = display.add_task("", total=None)

        def move(text: str) -> None:
            passed = units.duration(monotonic.now_s() - began_s)
            display.update(task, description=f"{passed} {text}", refresh=True)

        yield move


class Progress:
    """Shows a sweep while it is measured: a short line for each point, and in a terminal the current case."""

    def __init__(self, sweep: Sweep, points: Sequence[Point], console: "Console") -> None:
        from rich.progress import BarColumn

        self._sweep = sweep
        self._points = points
        self._console = console
        self._labels = names(sweep.points, LONGEST_NAME)
        self._numbers: dict[Point, int] = {}  # of points that have a line, in the order of their first
        self._answers: dict[Point, Answer] = {}
        self._waiting = {*points}
        self._end_s: float | None = None
        self._began_s = monotonic.now_s()
        self._drawn_s = -OFTEN_S
        self._display = _display(console, BarColumn(BAR))
        self._task = self._display.add_task(f"{START} …", total=1.0)

    def opened(self, folder: Path) -> None:
        """Print the sweep, the folder, and that workers are starting."""
        sweep, effort, count = self._sweep, self._sweep.effort, len(self._points)
        words = ("side", "sides") if BEFORE in sweep.implementations else ("implementation", "implementations")
        self._say(
            f"sweep {sweep.name}{f', shard {sweep.shard}' if sweep.shard else ''}: {counted(count, 'point')} × "
            f"{counted(len(sweep.implementations), *words)}"
            f"{f' and {CONTROL}' if sweep.measured != sweep.implementations else ''}, {_effort(effort, count)}"
        )
        self._say(" · ".join(parts(sweep.points[0], set(POINT_COLUMNS) - varying(sweep.points))))
        needed_s = count * (effort.budget_s + effort.processes * len(sweep.measured) * PROCESS_S)
        if effort.within_s is not None and effort.within_s < needed_s:
            rest = "resume the run to measure the rest" if count > 1 else "the first one is always finished"
            self._say(
                f"warning: {units.duration(effort.within_s)} may be too short for {counted(count, 'point')} "
                f"(about {units.duration(needed_s)}); {rest}",
                "yellow",
            )
        self._say(f"writing results to {folder}")
        if self._display.disable:
            self._say(f"{START} …")
        self._display.start()

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(text, style=style, soft_wrap=True, markup=False, emoji=False)

    def follow(self, run: "Run") -> None:
        """Print an open run's warnings, and show the events of its workers from now on."""
        for warning in run.warnings:
            self._say(f"warning: {warning}", "yellow")
        self._run, run.heard = run, self.heard
        if self._sweep.effort.race:
            self._end_s = run.end_s(len(self._points))
        self._waiting -= {*run.finished()}
        self._to_measure = len(self._waiting)
        self._began_s = monotonic.now_s()

    def heard(self, point: Point, process: int, implementation: str, stage: str) -> None:
        """Draw the bar with a worker's event."""
        del process
        if monotonic.now_s() - self._drawn_s < OFTEN_S:
            return
        self._drawn_s, left_s = monotonic.now_s(), self._left_s()
        passed_s = self._drawn_s - self._began_s
        share = passed_s / (passed_s + left_s) if left_s else len(self._numbers) / len(self._points)
        left = f"about {units.duration(left_s)} left · " if left_s else ""
        work = f"{implementation}: {stage}" if implementation else stage
        text = f"{left}{self._labels[point]} · {work}"
        self._display.update(self._task, completed=share, description=text, refresh=True)

    def told(self, point: Point, answer: "Answer | None" = None) -> None:
        """Print the line of a point after its base, and again once its answer is good; without an answer it is done."""
        before = self._answers.get(point)
        self._waiting.discard(point)
        if answer is not None:
            self._answers[point] = answer
        is_first = point not in self._numbers
        if is_first:
            self._numbers[point] = len(self._numbers) + 1
        if is_first or (answer is not None and answer.is_good and before is not None and not before.is_good):
            self._print(point)

    def _print(self, point: Point) -> None:
        """Print the line of a point with its answer so far."""
        from bench.show.answer import At
        from bench.show.summary import log_line

        rows, left_s = self._run.rows(point), self._left_s()
        at = At(point, self._labels[point], tuple(rows))
        left = units.duration(left_s) if left_s and left_s >= 1 else ""
        self._say(log_line(at, self._numbers[point], len(self._points), left, self._sweep.baseline))

    def _left_s(self) -> float | None:
        """Return the remaining seconds, None if there are none or they are unknown.

        A race ends by its clock, or when all answers are good. Without a race, the other points are expected to take as
        long as the earlier ones.
        """
        now_s = monotonic.now_s()
        if self._end_s is not None:
            is_answered = not self._waiting and all(answer.is_good for answer in self._answers.values())
            return None if is_answered or now_s >= self._end_s else self._end_s - now_s
        done = self._to_measure - len(self._waiting)
        return (now_s - self._began_s) / done * len(self._waiting) if done else None

    def close(self) -> None:
        """Remove the bar."""
        self._display.stop()


def _effort(effort: Effort, points: int) -> str:
    """Return the effort of a sweep in words."""
    if effort.race:
        most = units.duration(effort.seconds(points))
        return f"a race to {units.percent(effort.bound, trim=True)} within {most}"
    return counted(effort.processes, "process", "processes")
