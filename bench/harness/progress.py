"""The progress of a sweep in a log: a line for each point as it ends, and the time that is left."""

import dataclasses
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from bench.analyse.forecast import work
from bench.engine.admission import too_large
from bench.machine import monotonic
from bench.machine.facts import available_bytes
from bench.plan.case import BEFORE, CONTROL, POINT_COLUMNS, Case, Point
from bench.plan.sweep import Effort, Sweep
from bench.show.text import LONGEST_NAME, counted, differences, names, parts, varying
from bench.store import units

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from bench.analyse.standing import Look
    from bench.show.answer import At

LOG_WIDTH = 100
"""The longest line in a log, in characters."""

LOG_LINE = 118
"""The longest line of a point in a log, in characters."""

REWRITE = "\r\x1b[2K"
"""The codes that move to the beginning of a terminal's line and clear it."""

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


class Screen:
    """The output of the progress: a terminal of some width, or a log, in which no line is rewritten.

    As a context it clears the moving line at its end.
    """

    def __init__(self, write: Callable[[str], None], *, is_terminal: bool, width: int) -> None:
        self.width = width if is_terminal else LOG_WIDTH
        self.is_terminal = is_terminal
        self.write = write
        self._moving = ""
        self._began_s = monotonic.now_s()

    def __enter__(self) -> "Screen":
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def say(self, text: str) -> None:
        """Print lines that stay, wrapped between words if they are too long."""
        for line in text.splitlines():
            for part in textwrap.wrap(line, self.width, break_long_words=False, break_on_hyphens=False) or [""]:
                self.line(part)

    def line(self, text: str) -> None:
        """Print one line that stays, without wrapping it."""
        self.clear()
        self.write(f"{text}\n")

    def move(self, text: str) -> None:
        """Rewrite the moving line with the time since the beginning and a text, cut to the width; nothing in a log."""
        text = shortened(f"{units.duration(monotonic.now_s() - self._began_s)} {text}", self.width - 1)
        if self.is_terminal and text != self._moving:
            self.write(f"{REWRITE}{text}")
            self._moving = text

    def flush(self) -> None:
        """Do nothing, since every text is written at once: so rich takes a screen for a file."""

    def clear(self) -> None:
        """Clear the moving line."""
        if self._moving:
            self.write(REWRITE)
            self._moving = ""


def screen_of(console: "Console") -> Screen:
    """Return the screen of a console."""

    def write(text: str) -> None:
        console.file.write(text)
        console.file.flush()

    return Screen(write, is_terminal=console.is_terminal, width=console.width)


def progress_of(sweep: Sweep, total: int, screen: Screen, *, height: int, detail: int = 0) -> "LogProgress":
    """Return the progress that suits a terminal of this height, or a log; that of silence is a log too."""
    if not screen.is_terminal or detail < 0:
        return LogProgress(sweep, total, screen, detail=detail)
    from bench.harness.live import LiveProgress  # slow to import

    return LiveProgress(sweep, total, screen, height=height, detail=detail)


class LogProgress:
    """Prints a short line for each point as it ends.

    With `detail` of 1 another line has each implementation's time; with -1 nothing is printed but warnings.
    """

    def __init__(self, sweep: Sweep, total: int, screen: Screen, *, detail: int = 0) -> None:
        self._sweep = sweep
        self._total = total
        self._screen = screen
        self._detail = detail
        self._varying = varying(sweep.points)
        self._labels = names(sweep.points, LONGEST_NAME)
        self._done = 0
        self._points: dict[Point, At] = {}  # what each says so far, in the order in which they had something to say
        self._time_left = TimeLeft(sweep.points, sweep.effort.processes)
        self._racing: dict[Point, Look] = {}
        self._began_s = monotonic.now_s()
        self._has_foreseen = False

    def opened(self, folder: Path) -> None:
        """Print the sweep, the folder, and that the workers are being started."""
        if self._detail < 0:
            return
        sweep, effort = self._sweep, self._sweep.effort
        shared = parts(sweep.points[0], set(POINT_COLUMNS) - self._varying)
        words = ("side", "sides") if BEFORE in sweep.implementations else ("implementation", "implementations")
        self._screen.say(
            f"sweep {sweep.name}{f', shard {sweep.shard}' if sweep.shard else ''}: "
            f"{counted([self._total], 'point', 'points')} × "
            f"{counted([len(sweep.implementations)], *words)}"
            f"{f' and {CONTROL}' if sweep.measured != sweep.implementations else ''}, "
            f"{_effort(effort, self._total)}, "
            f"{' '.join(shared)}"
        )
        self._screen.say(f"results go to {folder}")
        self._warn_of_memory()
        self._start("starting worker processes …")

    def _start(self, words: str) -> None:
        """Say what comes before the first point."""
        self._screen.say(words)

    def _warn_of_memory(self) -> None:
        """Print how many cases can't fit into memory, and why the first of them can't."""
        names, free_bytes = self._sweep.implementations, available_bytes()
        reasons = {point: too_large(point, names, free_bytes) for point in self._sweep.points}
        count = sum(map(len, reasons.values()))
        if not count:
            return
        first = next(point for point, reason in reasons.items() if reason)
        self._screen.say(
            f"{count} of {len(reasons) * len(names)} cases can't fit into memory and will be skipped. "
            f"At {differences(first, self._varying) or 'the only point'}, {', '.join(reasons[first])}: "
            f"{next(iter(reasons[first].values()))}"
        )

    def started(self, warnings: Iterable[str] = ()) -> None:
        """Print warnings about the machine, and begin to time the points, because the workers are ready."""
        for warning in warnings:
            self._say(f"warning: {warning}")
        self._began_s = monotonic.now_s()

    def races(self, end_s: float) -> None:
        """Take note that a race begins, and that it ends at this time of the monotonic clock, or with its base."""
        if self._time_left.end_s is None:
            self._began_s = monotonic.now_s()
        self._time_left.end_s = end_s
        self._time_left.may_wait = self._sweep.effort.within_s is not None

    def looked(self, point: Point, look: "Look", rows: "pd.DataFrame") -> None:
        """Show what a look at a point says: its line after the first one, and again, with its number, once answered."""
        before, self._racing[point] = self._racing.get(point), look
        if before is None:
            self._end_base(point)
        self._note(rows, is_news=before is None or (look.is_answered and not before.is_answered))

    def heard(self, point: Point, process: int, _implementation: str, _stage: str) -> None:
        """Show the progress that a worker reports; a log only says if there is too little time."""
        self._foresee(point, process)

    def _foresee(self, point: Point, process: int) -> None:
        """Say once, as soon as it is known, that the base of all points takes longer than a race may."""
        within_s, now_s = self._sweep.effort.within_s, monotonic.now_s()
        if self._time_left.end_s is None or within_s is None or self._has_foreseen or self._detail < 0:
            return
        rest_s = self._time_left.base_s(point, now_s - self._began_s, process)
        if rest_s is not None and now_s + LATER * rest_s > self._time_left.end_s:
            self._has_foreseen = True
            base_s, given = within_s + now_s + rest_s - self._time_left.end_s, units.duration(within_s)
            points = counted([self._total], "point", "points")
            waits = "; what isn't expected to end in time waits" if self._total > 1 else ""
            self._say(f"base of {points}: about {units.duration(base_s)}, longer than --within {given}{waits}")

    def _end_base(self, point: Point) -> None:
        now_s = monotonic.now_s()
        self._done += 1
        self._time_left.finished(point, now_s - self._began_s)
        self._began_s = now_s

    @property
    def _answered(self) -> int:
        """The number of points that a race has answered."""
        return sum(look.is_answered for look in self._racing.values())

    def finished(self, rows: "pd.DataFrame") -> None:
        """Print the line of a point that is done, unless it was printed when it was answered."""
        point = Case.from_columns({str(name): value for name, value in rows.iloc[0].items()}).point
        look = self._racing.get(point)
        if look is None:
            self._end_base(point)
        if look is None or not look.is_answered:
            self._note(rows)

    def close(self, *, keep: bool = False) -> None:
        """End the display; with `keep` the lines of points stay, which in a log they always do."""

    def _say(self, text: str) -> None:
        """Print lines that stay."""
        self._screen.say(text)

    def _note(self, rows: "pd.DataFrame", *, is_news: bool = True) -> None:
        """Take what a point says into the list of all, and show it."""
        from bench.show.summary import at_point

        at = at_point(rows, self._labels)
        self._points[at.point] = at
        self._show(at, is_news)

    def _show(self, at: "At", is_news: bool) -> None:
        """Print the line of a point if it is news."""
        if self._detail < 0 or not is_news:
            return
        from bench.show.summary import log_line, outcomes

        is_open = self._done < self._total or self._answered < len(self._racing)
        left = units.duration(self._time_left.left_s()) if is_open else ""
        width = max(LOG_LINE, self._screen.width) if self._screen.is_terminal else LOG_LINE
        number, baseline = [*self._points].index(at.point) + 1, self._sweep.baseline
        self._line(log_line(at, number, self._total, left, baseline, width))
        if self._detail > 0:
            self._say(f"  {'; '.join(outcomes(at, baseline))}")

    def _line(self, text: str) -> None:
        """Print the line of a point."""
        self._screen.line(text)


def _effort(effort: Effort, points: int) -> str:
    """Return how long and how surely a sweep measures."""
    if effort.race:
        most = units.duration(effort.seconds(points))
        return f"a race to {units.percent(effort.bound, trim=True)} within {most}"
    spread = f" over {units.duration(effort.spread_s)}" if effort.spread_s else ""
    return f"{counted([effort.processes], 'process', 'processes')}{spread}"


def shortened(text: str, width: int) -> str:
    """Return the whole words of a text that fit into a width, with `…` if words are left out."""
    if len(text) <= width:
        return text
    return text[: max(0, width - 1)].rpartition(" ")[0].rstrip(" |,:") + " …"
