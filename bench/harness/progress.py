"""The progress of a sweep: a line for each point, and in a terminal a line that is rewritten in place."""

import textwrap
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.analyse.forecast import work
from bench.engine.admission import too_large
from bench.machine import monotonic
from bench.machine.facts import available_bytes
from bench.plan.case import BEFORE, CONTROL, POINT_COLUMNS, Point
from bench.plan.sweep import Effort, Sweep
from bench.show.text import LONGEST_NAME, counted, differences, listed, names, parts, varying
from bench.store import units

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Display
    from rich.progress import ProgressColumn

    from bench.analyse.standing import Answer
    from bench.engine.run import Run

SILENT_S = 1.0
"""The longest that a command waits without a word."""

LOG_SILENT_S = 10.0
"""The time without a word after which a log says for what a command waits; then twice as long each time."""

START, ROUNDS = "start", "rounds"
"""The stage before any process of a replicate is there, and that in which a point is measured."""

LOG_WIDTH = 100
"""The longest line in a log, in characters."""

LOG_LINE = 118
"""The longest line of a point in a log, in characters."""

BAR = 12
"""The width of the display's bar in characters."""

OFTEN_S = 0.2
"""The display is drawn again at most this often."""

KNOWN_S = 0.2
"""A point that takes less was measured earlier, and says nothing of the others."""


def put(console: "Console", text: str) -> None:
    """Print one line that stays, without wrapping it."""
    console.print(text, soft_wrap=True, markup=False, emoji=False)


def say(console: "Console", text: str, style: str = "") -> None:
    """Print lines that stay, wrapped between words if they are too long."""
    width = console.width if console.is_terminal else LOG_WIDTH
    for line in text.splitlines():
        for part in textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""]:
            console.print(part, style=style, soft_wrap=True, markup=False, emoji=False)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say where results don't go for what a command waits, if what is inside takes longer than a second."""
    from bench.show.terminal.console import console

    timer = threading.Timer(SILENT_S, lambda: say(console(stderr=True), f"{what} …", "dim"))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def imported(sweep: Sweep) -> str:
    """Return what the processes of a sweep import, which takes minutes if something is compiled there."""
    named = (*sweep.implementations, *dict.fromkeys(point.layer for point in sweep.points))
    modules = dict.fromkeys(name.partition("[")[0] for name in named if ":" in name)
    return f"they import {listed(['torch', *modules])}"


class Silence:
    """Says `still` and its text when nothing was `said` for LOG_SILENT_S, and again after twice as long."""

    def __init__(self, console: "Console") -> None:
        self.text = ""
        self._console = console
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.said()

    def said(self) -> None:
        """Note that something was said."""
        self._limit_s = LOG_SILENT_S
        self._next_s = monotonic.now_s() + self._limit_s

    def begin(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def end(self) -> None:
        """Say nothing any more."""
        self._ended.set()

    def _watch(self) -> None:
        while not self._ended.wait(max(0.0, self._next_s - monotonic.now_s())):
            if monotonic.now_s() >= self._next_s:
                self._limit_s *= 2
                self._next_s = monotonic.now_s() + self._limit_s
                if self.text:
                    say(self._console, f"still {self.text}", "dim")


def _display(console: "Console", *columns: "ProgressColumn", redirects: bool = False) -> "Display":
    """Return what rewrites a line of a terminal in place: columns, and a text that is cut to the width.

    It goes at the end. A log and a terminal that can't rewrite have none. With `redirects` warnings are printed above.
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
        redirect_stderr=redirects,
        disable=not console.is_terminal or console.is_dumb_terminal,
    )


@contextmanager
def moving(console: "Console") -> Iterator[Callable[[str], None]]:
    """Give what rewrites one line with the time since the beginning and a text; a log has the text now and then."""
    began_s, silence = monotonic.now_s(), Silence(console)
    with _display(console, redirects=True) as display:
        task = display.add_task("", total=None)

        def move(text: str) -> None:
            silence.text = text
            passed = units.duration(monotonic.now_s() - began_s)
            display.update(task, description=f"{passed} {text}", refresh=True)

        if display.disable:
            silence.begin()
        try:
            yield move
        finally:
            silence.end()


class Progress:
    """Shows a sweep while it is measured: a short line for each point, and in a terminal what is measured now.

    `points` are those of the sweep that are measured.
    """

    def __init__(self, sweep: Sweep, points: Sequence[Point], console: "Console") -> None:
        from rich.progress import BarColumn

        self._sweep = sweep
        self._selected = points
        self._console = console
        self._varying = varying(sweep.points)
        self._labels = names(sweep.points, LONGEST_NAME)
        self._numbers: dict[Point, int] = {}  # of those that said something, in the order in which they did
        self._answers: dict[Point, Answer] = {}
        self._end_s: float | None = None
        self._open = {point: work(point) for point in points}
        self._took_s = self._done = 0.0
        self._started_s = self._began_s = monotonic.now_s()
        self._silence = Silence(console)
        self._drawn_s = -OFTEN_S
        self._display = _display(console, BarColumn(BAR))
        self._task = self._display.add_task(self._start, total=1.0)

    @property
    def _start(self) -> str:
        return f"starting worker processes: {imported(self._sweep)} …"

    def opened(self, folder: Path) -> None:
        """Print the sweep, the folder, and that the workers are being started."""
        sweep, count = self._sweep, len(self._selected)
        shared = parts(sweep.points[0], set(POINT_COLUMNS) - self._varying)
        words = ("side", "sides") if BEFORE in sweep.implementations else ("implementation", "implementations")
        self._say(
            f"sweep {sweep.name}{f', shard {sweep.shard}' if sweep.shard else ''}: {counted(count, 'point')} × "
            f"{counted(len(sweep.implementations), *words)}"
            f"{f' and {CONTROL}' if sweep.measured != sweep.implementations else ''}, "
            f"{_effort(sweep.effort, count)}, {' '.join(shared)}",
        )
        self._say(f"results go to {folder}")
        self._warn_of_memory()
        if self._display.disable:
            self._say(self._start)
            self._silence.text = "waiting for the worker processes to start"
            self._silence.begin()
        self._display.start()

    def _say(self, text: str, style: str = "") -> None:
        say(self._console, text, style)
        self._silence.said()

    def _warn_of_memory(self) -> None:
        """Print how many cases can't fit into memory, and why the first of them can't."""
        names, free_bytes = self._sweep.implementations, available_bytes()
        reasons = {point: too_large(point, names, free_bytes) for point in self._selected}
        count = sum(map(len, reasons.values()))
        if not count:
            return
        first = next(point for point, reason in reasons.items() if reason)
        self._say(
            f"{count} of {len(reasons) * len(names)} cases can't fit into memory and will be skipped. "
            f"At {differences(first, self._varying) or 'the only point'}, {', '.join(reasons[first])}: "
            f"{next(iter(reasons[first].values()))}",
        )

    def follow(self, run: "Run") -> None:
        """Print the warnings of a run that is open, and show from now on what it hears of its workers."""
        for warning in run.warnings:
            self._say(f"warning: {warning}", "yellow")
        self._run, run.heard = run, self.heard
        if self._sweep.effort.race:
            self._end_s = run.end_s(len(self._selected))
        self._began_s = monotonic.now_s()

    def heard(self, point: Point, process: int, implementation: str, stage: str) -> None:
        """Show what a worker reports; a log says for what it waits if that takes long, and is no rounds."""
        at = f" ({self._labels[point]})" if len(self._selected) > 1 else ""
        what = f"{implementation or 'what the layer itself computes'}: {stage}"
        waits = "the processes to start" if stage == START else what
        self._silence.text = "" if stage == ROUNDS else f"waiting for {waits}{at}"
        if monotonic.now_s() - self._drawn_s >= OFTEN_S:
            done, total = len(self._numbers), len(self._selected)
            answered = sum(answer.is_good for answer in self._answers.values())
            has_bases = bool(self._answers) and done >= total
            where = f"answered {answered}" if has_bases else f"point {min(done + 1, total)}"
            work = f"{implementation}: {stage}" if implementation else stage
            self._draw(f"{where} of {total}: {self._labels[point]} · {work} · {self._standing(point, process)}")

    def _standing(self, point: Point, process: int) -> str:
        """Return where a point stands: its process, and in a race who is named so far and how many are left."""
        planned, answer = self._sweep.effort.processes, self._answers.get(point)
        if answer is None or answer.is_good:
            return f"process {process + 1}{f' of {planned}' if process < planned else ''}"
        return f"{answer.named} so far, {len(answer.candidates)} left, within {units.percent(answer.bound)}"

    def told(self, point: Point, answer: "Answer | None" = None) -> None:
        """Show what a race says of a point, or, without an answer, what a point says that is done.

        Its line comes after its base, and again, with its number, once its answer is good, or when it is done.
        """
        before = self._answers.get(point)
        if answer is not None:
            self._answers[point] = answer
        elif before is not None and before.is_good:
            return
        if before is None:
            self._finished(point)
        if before is None or ((answer is None or answer.is_good) and not before.is_good):
            self._print(point)

    def _finished(self, point: Point) -> None:
        """Note that a point has its base, and how long that took."""
        took_s = monotonic.now_s() - self._began_s
        self._began_s += took_s
        self._numbers[point] = len(self._numbers) + 1
        done = self._open.pop(point, 0.0)
        if took_s >= KNOWN_S:
            self._took_s += took_s
            self._done += done

    def _print(self, point: Point) -> None:
        """Print the line of a point, with what it says so far."""
        from bench.show.answer import At, choice_of
        from bench.show.summary import log_line

        rows = self._run.records.rows(point)
        at = At(point, self._labels[point], tuple(rows), choice_of(rows))
        total = len(self._selected)
        is_open = len(self._numbers) < total or not all(answer.is_good for answer in self._answers.values())
        left = units.duration(self._left_s()) if is_open else ""
        width = self._console.width if self._console.is_terminal else LOG_LINE
        put(self._console, log_line(at, self._numbers[point], total, left, self._sweep.baseline, width))
        self._silence.said()

    def _left_s(self) -> float | None:
        """Return the seconds that are left; None if nothing tells yet.

        Points without a base take as long as the others took, by their work. A race ends by its clock, or with its
        base, which it doesn't wait for if its time was asked for.
        """
        now_s = monotonic.now_s()
        known_s = [] if self._end_s is None or self._end_s < now_s else [self._end_s - now_s]
        if self._done and not (known_s and self._sweep.effort.within_s):
            base_s = self._took_s / self._done * sum(self._open.values())
            known_s.append(max(0.0, base_s - (now_s - self._began_s)))
        return max(known_s, default=None)

    def _draw(self, text: str) -> None:
        """Draw the display: how much is done, the time left, and what is measured."""
        self._drawn_s, left_s = monotonic.now_s(), self._left_s()
        passed_s = self._drawn_s - self._started_s
        if left_s is not None:
            share = passed_s / (passed_s + left_s or 1.0)
        else:  # a race whose time is over measures what it began
            share = 1.0 if self._end_s else len(self._numbers) / len(self._selected)
        left = "" if left_s is None else f" · about {units.duration(left_s)} left"
        self._display.update(self._task, completed=share, description=f"{share:.0%}{left} · {text}", refresh=True)

    def close(self) -> None:
        """End the display."""
        self._silence.end()
        self._display.stop()


def _effort(effort: Effort, points: int) -> str:
    """Return how long and how surely a sweep measures."""
    if effort.race:
        most = units.duration(effort.seconds(points))
        return f"a race to {units.percent(effort.bound, trim=True)} within {most}"
    return counted(effort.processes, "process", "processes")
