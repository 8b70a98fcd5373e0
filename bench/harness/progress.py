"""The progress of a sweep: a line for each point in a log, a display that is rewritten in place in a terminal."""

import dataclasses
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
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
    from rich.console import Console, RenderableType
    from rich.live import Live

    from bench.analyse.standing import Answer
    from bench.engine.run import Run
    from bench.show.answer import At
    from bench.show.summary import PointLine

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

BESIDE = 6
"""The lines of the display that are no points."""

BAR = 30
"""The width of the display's bar in characters."""

OFTEN_S = 0.2
"""The display is drawn again at most this often."""

LEAST_S = 1.0
"""What is left of a race at least as long as it is at work."""

LATER = 0.5
"""The share of the time of a first replicate that another one takes at least: the first compiles too."""

KNOWN_S = 0.2
"""A point that takes less was measured earlier, and says nothing of the others."""


class TimeLeft:
    """The remaining time of a sweep: a point takes as long as those that are done took, by its work.

    Points that differ in their dtype alone are measured together, so they count as one. A race ends at `end_s` of the
    monotonic clock, or with its base, if that takes longer; if it `may_wait`, no base is begun that would.
    """

    end_s: float | None = None
    may_wait = False

    def __init__(self, points: Iterable[Point], processes: int) -> None:
        self._processes = processes
        self._work: dict[Point, float] = {}
        for point in points:
            self._work[_together(point)] = self._work.get(_together(point), 1.0) + work(point)
        self._open = set(self._work)
        self._took_s, self._done = 0.0, 0.0
        self._first: dict[Point, int] = {}

    def finished(self, point: Point, took_s: float) -> None:
        """Note that a point is done, and how long it took."""
        group = _together(point)
        if group in self._open and took_s >= KNOWN_S:
            self._took_s += took_s
            self._done += self._work[group]
        self._open.discard(group)

    def left_s(self, current: Point | None = None, in_point_s: float = 0.0, process: int = 0) -> float | None:
        """Return the seconds that are left, of a race at most; None if nothing tells yet.

        `current` has been measured for `in_point_s` seconds, and now in this process. It counts from 0 at the start of
        the run; the first one seen here is where a run that goes on began.
        """
        if self.end_s is None:
            return self.base_s(current, in_point_s, process)
        left_s = self.end_s - monotonic.now_s()
        base_s = self.base_s(current, in_point_s, process, is_whole=not self.may_wait)
        return (left_s if left_s > 0 else None) if base_s is None else max(left_s, base_s, LEAST_S)

    def base_s(
        self, current: Point | None = None, in_point_s: float = 0.0, process: int = 0, *, is_whole: bool = True
    ) -> float | None:
        """Return the seconds that the processes of all points still take, or only those of the current one."""
        others = sum(self._work[group] for group in self._open) if is_whole else 0.0
        per_work_s = self._took_s / self._done if self._done else None
        rest_s = 0.0
        if current is not None and (group := _together(current)) in self._open:
            own, first = self._work[group], self._first.setdefault(group, process)
            others = max(0.0, others - own)
            whole_s = None if per_work_s is None else per_work_s * own
            if (done := process - first) and (whole_s is None or in_point_s >= whole_s):
                whole_s = in_point_s * (self._processes - first) / done
            if not whole_s:
                return None
            rest_s = max(0.0, whole_s - in_point_s)
            per_work_s = per_work_s or whole_s / own
        if per_work_s is None:
            return None if others else rest_s
        return rest_s + per_work_s * others


def _together(point: Point) -> Point:
    return dataclasses.replace(point, dtype="float32")


def put(console: "Console", text: str) -> None:
    """Print one line that stays, without wrapping it."""
    console.print(text, soft_wrap=True, markup=False, emoji=False)


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


class Silence:
    """Calls `tell` from a thread when `said` was not called for LOG_SILENT_S, and again after twice as long."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
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
                self._tell()


def imported(sweep: Sweep) -> str:
    """Return what the processes of a sweep import, which takes minutes if something is compiled there."""
    named = (*sweep.implementations, *dict.fromkeys(point.layer for point in sweep.points))
    modules = dict.fromkeys(name.partition("[")[0] for name in named if ":" in name)
    return f"they import {listed(['torch', *modules])}"


def say(console: "Console", text: str, style: str = "") -> None:
    """Print lines that stay, wrapped between words if they are too long."""
    width = console.width if console.is_terminal else LOG_WIDTH
    for line in text.splitlines():
        for part in textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""]:
            console.print(part, style=style, soft_wrap=True, markup=False, emoji=False)


def _live(console: "Console", *, redirects: bool = False) -> "Live":
    """Return what rewrites lines of a terminal in place; with `redirects` warnings are printed before them."""
    from rich.live import Live  # slow to import

    return Live(
        console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=redirects,
        vertical_overflow="crop",
    )  # fmt: skip


@contextmanager
def moving(console: "Console") -> Iterator[Callable[[str], None]]:
    """Give what rewrites one line with the time since the beginning and a text, cut to the width.

    A log has the latest text now and then.
    """
    from rich.text import Text

    began_s, latest = monotonic.now_s(), ""

    def tell() -> None:
        if latest:
            say(console, f"still {latest}", "dim")

    silence = Silence(tell)
    with _live(console, redirects=True) as live:

        def move(text: str) -> None:
            nonlocal latest
            latest = text
            text = shortened(f"{units.duration(monotonic.now_s() - began_s)} {text}", console.width - 1)
            live.update(Text(text), refresh=True)

        if not console.is_terminal:
            silence.begin()
        try:
            yield move
        finally:
            silence.end()


class Progress:
    """Shows a sweep while it is measured: a short line for each point in a log, a display in a terminal.

    The display is rewritten in place, never grows beyond the terminal, and goes at the end; a terminal that can't
    rewrite has the lines of a log. With `detail` of 1 a terminal has the lines of points too, and each has another line
    with the times of implementations; with -1 nothing is printed but warnings. `points` are those of the sweep that are
    measured.
    """

    def __init__(self, sweep: Sweep, points: Sequence[Point], console: "Console", *, detail: int = 0) -> None:
        self._sweep = sweep
        self._selected = points
        self._total = len(points)
        self._console = console
        self._detail = detail
        self._varying = varying(sweep.points)
        self._labels = names(sweep.points, LONGEST_NAME)
        self._done = 0
        self._points: dict[Point, At] = {}  # what each says so far, in the order in which they had something to say
        self._answers: dict[Point, Answer] = {}
        self._time_left = TimeLeft(points, sweep.effort.processes)
        self._left_s: float | None = None
        self._has_foreseen = False
        self._now = f"starting worker processes: {imported(sweep)} …"
        self._awaited = "the worker processes to start"
        self._silence = Silence(self._tell_awaited)
        self._started_s = self._began_s = monotonic.now_s()
        self._drawn_s = 0.0
        is_rewritten = console.is_terminal and not console.is_dumb_terminal
        self._live = _live(console) if is_rewritten and detail >= 0 else None

    def opened(self, folder: Path) -> None:
        """Print the sweep, the folder, and that the workers are being started."""
        if self._detail < 0:
            return
        sweep, effort = self._sweep, self._sweep.effort
        shared = parts(sweep.points[0], set(POINT_COLUMNS) - self._varying)
        words = ("side", "sides") if BEFORE in sweep.implementations else ("implementation", "implementations")
        self._say(
            f"sweep {sweep.name}{f', shard {sweep.shard}' if sweep.shard else ''}: "
            f"{counted(self._total, 'point')} × "
            f"{counted(len(sweep.implementations), *words)}"
            f"{f' and {CONTROL}' if sweep.measured != sweep.implementations else ''}, "
            f"{_effort(effort, self._total)}, "
            f"{' '.join(shared)}",
        )
        self._say(f"results go to {folder}")
        self._warn_of_memory()
        if self._live:
            self._live.start()
            self._draw()
        else:
            self._say(self._now)
            self._silence.begin()

    def _say(self, text: str, style: str = "") -> None:
        say(self._console, text, style)
        self._silence.said()

    def _put(self, text: str) -> None:
        put(self._console, text)
        self._silence.said()

    def _tell_awaited(self) -> None:
        """Say in a log for what it waits, if that isn't what a point's line will say."""
        if self._awaited:
            say(self._console, f"still waiting for {self._awaited}", "dim")

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
            self._time_left.end_s = run.end_s(self._total)
            self._time_left.may_wait = self._sweep.effort.within_s is not None
        self._began_s = monotonic.now_s()

    def heard(self, point: Point, process: int, implementation: str, stage: str) -> None:
        """Show what a worker reports; a log only says if there is too little time, and for what it waits for long."""
        self._foresee(point, process)
        at = f" ({self._labels[point]})" if self._total > 1 else ""
        self._awaited = ""
        if stage != ROUNDS:
            what = f"{implementation or 'what the layer itself computes'}: {stage}"
            self._awaited = f"{'the processes to start' if stage == START else what}{at}"
        if self._live:
            work = f"{implementation}: {stage}" if implementation else stage
            self._now = f"{self._labels[point]} · {work} · {self._standing(point, process)}"
            now_s = monotonic.now_s()
            self._left_s = self._time_left.left_s(point, now_s - self._began_s, process)
            if now_s - self._drawn_s >= OFTEN_S:
                self._draw()

    def _foresee(self, point: Point, process: int) -> None:
        """Say once, as soon as it is known, that the base of all points takes longer than a race may."""
        within_s, now_s = self._sweep.effort.within_s, monotonic.now_s()
        if self._time_left.end_s is None or within_s is None or self._has_foreseen or self._detail < 0:
            return
        rest_s = self._time_left.base_s(point, now_s - self._began_s, process)
        if rest_s is not None and now_s + LATER * rest_s > self._time_left.end_s:
            self._has_foreseen = True
            base_s, given = within_s + now_s + rest_s - self._time_left.end_s, units.duration(within_s)
            points = counted(self._total, "point")
            waits = "; what isn't expected to end in time waits" if self._total > 1 else ""
            self._say(f"base of {points}: about {units.duration(base_s)}, longer than --within {given}{waits}")

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
            took_s = monotonic.now_s() - self._began_s
            self._time_left.finished(point, took_s if self._sweep.effort.spread_s is None else 0.0)  # else all at once
            self._done += 1
        is_last = answer is None or answer.is_good
        self._note(point, is_news=before is None or (is_last and not before.is_good))
        if before is None:
            self._began_s = monotonic.now_s()

    @property
    def _answered(self) -> int:
        """The number of points to which a race has a good answer."""
        return sum(answer.is_good for answer in self._answers.values())

    def _note(self, point: Point, *, is_news: bool) -> None:
        """Show what a point says so far, in a log only if it is news."""
        if self._detail < 0:
            return
        from bench.show.summary import at_point, log_line, outcomes
        from bench.store.table import without_control

        at = self._points[point] = at_point(without_control(self._run.records.rows(point)), self._labels)
        if is_news and (self._detail or not self._live):
            is_open = self._done < self._total or self._answered < len(self._answers)
            left = units.duration(self._time_left.left_s()) if is_open else ""
            width = max(LOG_LINE, self._console.width) if self._console.is_terminal else LOG_LINE
            number, baseline = [*self._points].index(point) + 1, self._sweep.baseline
            self._put(log_line(at, number, self._total, left, baseline, width))
            if self._detail:
                self._say(f"  {'; '.join(outcomes(at, baseline))}")
        if self._live:
            self._left_s = self._time_left.left_s()
            self._draw()

    def close(self, *, keep: bool = False) -> None:
        """End the display; with `keep` the lines of points stay, which in a log they always do."""
        self._silence.end()
        if not (self._live and self._live.is_started):
            return
        self._live.stop()
        if keep and self._points and not self._detail:
            from bench.show.summary import point_lines

            self._console.print(self._table(point_lines(self._points.values())))

    def _draw(self) -> None:
        """Draw the display: the point at work, a bar with the time left, and what the latest points say."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        from bench.show.summary import point_lines

        assert self._live is not None
        self._drawn_s = monotonic.now_s()
        passed_s = self._drawn_s - self._started_s
        done = self._done / self._total if self._left_s is None else passed_s / (passed_s + self._left_s or 1.0)
        left = "" if self._left_s is None else f" · about {units.duration(self._left_s)} left"
        beside = Table.grid()
        bar = ProgressBar(total=1.0, completed=min(done, 1.0), width=BAR)
        beside.add_row(bar, Text(f" {done:.0%}{left} · {units.duration(passed_s)} so far"))
        has_bases = bool(self._answers) and self._done >= self._total
        where = f"answered {self._answered}" if has_bases else f"point {min(self._done + 1, self._total)}"
        now = shortened(f"{where} of {self._total}: {self._now}", self._console.width - 1)
        lines = [] if self._detail else point_lines(self._points.values())
        most = max(1, self._console.height - BESIDE)
        earlier = [Text(f"… {len(lines) - most} earlier lines", "dim")] if len(lines) > most else []
        table = [self._table(lines[-most:])] if lines else []
        self._live.update(Group(Text(now, "bold"), beside, *earlier, *table), refresh=True)

    def _table(self, lines: "Sequence[PointLine]") -> "RenderableType":
        from bench.show import blocks, summary
        from bench.show.terminal.console import Fitting

        return Fitting(blocks.Table(summary.point_columns(self._sweep.baseline), lines))


def _effort(effort: Effort, points: int) -> str:
    """Return how long and how surely a sweep measures."""
    if effort.race:
        most = units.duration(effort.seconds(points))
        return f"a race to {units.percent(effort.bound, trim=True)} within {most}"
    spread = f" over {units.duration(effort.spread_s)}" if effort.spread_s else ""
    return f"{counted(effort.processes, 'process', 'processes')}{spread}"


def shortened(text: str, width: int) -> str:
    """Return the whole words of a text that fit into a width, with `…` if words are left out."""
    if len(text) <= width:
        return text
    return text[: max(0, width - 1)].rpartition(" ")[0].rstrip(" |,:") + " …"
