"""The progress of a sweep: a line for each point, and in a terminal a bar with what is measured now."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.commands import say
from bench.machine import monotonic
from bench.plan.case import BEFORE, CONTROL, POINT_COLUMNS, Point
from bench.plan.sweep import Effort, Sweep
from bench.show.text import LONGEST_NAME, counted, names, parts, varying
from bench.store import units

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Display
    from rich.progress import ProgressColumn

    from bench.analyse.standing import Answer
    from bench.engine.run import Run

SILENT_S = 1.0
"""The longest that a command waits without a word."""

START = "starting workers (importing torch)"
"""What every command that measures waits for first."""

BAR = 12
"""The width of the bar in characters."""

OFTEN_S = 0.2
"""The bar is drawn again at most this often: the process that draws shares the machine with those that are measured."""


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say where results don't go for what a command waits, if what is inside takes longer than a second."""
    timer = threading.Timer(SILENT_S, lambda: say(f"{what} …", stderr=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _display(console: "Console", *columns: "ProgressColumn") -> "Display":
    """Return what rewrites a line of a terminal in place: columns, and a text that is cut to the width.

    It goes at the end. A log and a terminal that can't rewrite have none.
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
    """Give what rewrites one line of a terminal with the time since the beginning and a text."""
    began_s = monotonic.now_s()
    with _display(console) as display:
        task = display.add_task("", total=None)

        def move(text: str) -> None:
            passed = units.duration(monotonic.now_s() - began_s)
            display.update(task, description=f"{passed} {text}", refresh=True)

        yield move


class Progress:
    """Shows a sweep while it is measured: a short line for each point, and in a terminal what is measured now."""

    def __init__(self, sweep: Sweep, points: Sequence[Point], console: "Console") -> None:
        from rich.progress import BarColumn

        self._sweep = sweep
        self._points = points
        self._console = console
        self._labels = names(sweep.points, LONGEST_NAME)
        self._numbers: dict[Point, int] = {}  # of those that have a line, in the order of their first
        self._answers: dict[Point, Answer] = {}
        self._waiting = {*points}
        self._end_s: float | None = None
        self._began_s = monotonic.now_s()
        self._drawn_s = -OFTEN_S
        self._display = _display(console, BarColumn(BAR))
        self._task = self._display.add_task(f"{START} …", total=1.0)

    def opened(self, folder: Path) -> None:
        """Print the sweep, the folder, and that the workers are being started."""
        sweep, effort, count = self._sweep, self._sweep.effort, len(self._points)
        words = ("side", "sides") if BEFORE in sweep.implementations else ("implementation", "implementations")
        self._say(
            f"sweep {sweep.name}{f', shard {sweep.shard}' if sweep.shard else ''}: {counted(count, 'point')} × "
            f"{counted(len(sweep.implementations), *words)}"
            f"{f' and {CONTROL}' if sweep.measured != sweep.implementations else ''}, {_effort(effort, count)}"
        )
        self._say(" · ".join(parts(sweep.points[0], set(POINT_COLUMNS) - varying(sweep.points))))
        if effort.race and effort.within_s is not None and effort.within_s < effort.budget_s * count:
            self._say(
                f"warning: {units.duration(effort.within_s)} is too short, because the first rounds of "
                f"{counted(count, 'point')} take {units.duration(effort.budget_s * count)}; some points will be "
                "measured only when you resume the run",
                "yellow",
            )
        self._say(f"writing results to {folder}")
        if self._display.disable:
            self._say(f"{START} …")
        self._display.start()

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(text, style=style, soft_wrap=True, markup=False, emoji=False)

    def follow(self, run: "Run") -> None:
        """Print the warnings of a run that is open, and show from now on what it hears of its workers."""
        for warning in run.warnings:
            self._say(f"warning: {warning}", "yellow")
        self._run, run.heard = run, self.heard
        if self._sweep.effort.race:
            self._end_s = run.end_s(len(self._points))
        self._waiting -= {*run.finished()}
        self._to_measure = len(self._waiting)
        self._began_s = monotonic.now_s()

    def heard(self, point: Point, process: int, implementation: str, stage: str) -> None:
        """Draw the bar with what a worker reports."""
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
        """Print the line of a point after its base, and again once its answer is good; without one, it is done."""
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
        """Print the line of a point, with what it says so far."""
        from bench.show.answer import At
        from bench.show.summary import log_line

        rows, left_s = self._run.rows(point), self._left_s()
        at = At(point, self._labels[point], tuple(rows))
        left = units.duration(left_s) if left_s and left_s >= 1 else ""
        self._say(log_line(at, self._numbers[point], len(self._points), left, self._sweep.baseline))

    def _left_s(self) -> float | None:
        """Return the seconds that are left, None if nothing is or nothing tells.

        A race ends by its clock, or when all answers are good. Without one, points that wait take as long as the others
        did.
        """
        now_s = monotonic.now_s()
        if self._end_s is not None:
            is_answered = not self._waiting and all(answer.is_good for answer in self._answers.values())
            return None if is_answered or now_s >= self._end_s else self._end_s - now_s
        done = self._to_measure - len(self._waiting)
        return (now_s - self._began_s) / done * len(self._waiting) if done else None

    def close(self) -> None:
        """End the bar."""
        self._display.stop()


def _effort(effort: Effort, points: int) -> str:
    """Return how long and how surely a sweep measures."""
    if effort.race:
        most = units.duration(effort.seconds(points))
        return f"a race to {units.percent(effort.bound, trim=True)} within {most}"
    return counted(effort.processes, "process", "processes")
