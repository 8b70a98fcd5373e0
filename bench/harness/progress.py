"""The progress of a sweep: lines that stay, and in a terminal one that is rewritten."""

import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from bench.engine.admission import too_large
from bench.harness.time_left import TimeLeft, Until
from bench.plan.case import CONTROL, POINT_COLUMNS, Case, Point
from bench.plan.sweep import Effort, Sweep
from bench.show.point_text import counted, differences, parts, varying
from bench.store import units
from bench.store.machine import available_bytes

if TYPE_CHECKING:
    import pandas as pd
    from rich.text import Text

    from bench.analyse.race import Look

LOG_WIDTH = 100
"""The longest line in a log, in characters."""

LOG_LINE = 118
"""The longest line of a point in a log, in characters."""

SEPARATOR = " | "
"""The text between the parts of a point's line: its name, the verdict, and each implementation."""

REWRITE = "\r\x1b[2K"
"""The codes that move to the beginning of a terminal's line and clear it."""


class Screen:
    """The output of the progress: a terminal of some width, or a log, in which no line is rewritten."""

    def __init__(self, write: Callable[[str], None], *, is_terminal: bool, width: int) -> None:
        self.width = width if is_terminal else LOG_WIDTH
        self.is_terminal = is_terminal
        self._write = write
        self._moving = ""

    def say(self, text: str) -> None:
        """Print lines that stay, wrapped between words if they are too long."""
        for line in text.splitlines():
            for part in textwrap.wrap(line, self.width, break_long_words=False, break_on_hyphens=False) or [""]:
                self.line(part)

    def line(self, text: str) -> None:
        """Print one line that stays, without wrapping it."""
        self.clear()
        self._write(f"{text}\n")

    def move(self, text: str) -> None:
        """Rewrite the moving line with a text, cut to the width; do nothing in a log."""
        text = shortened(text, self.width - 1)
        if self.is_terminal and text != self._moving:
            self._write(f"{REWRITE}{text}")
            self._moving = text

    def write(self, text: str) -> None:
        """Write a text as it is."""
        self._write(text)

    def clear(self) -> None:
        """Clear the moving line."""
        if self._moving:
            self._write(REWRITE)
            self._moving = ""


class Progress:
    """Prints a long line for each point as it ends; a terminal also shows the current case and the time left."""

    def __init__(self, sweep: Sweep, total: int, screen: Screen, *, colour: bool) -> None:
        self._sweep = sweep
        self._total = total
        self._screen = screen
        self._colour = colour
        self._varying = varying(sweep.points)
        self._done = self._number = 0
        self._time_left: TimeLeft | Until = TimeLeft(sweep.points, sweep.effort.processes)
        self._racing: dict[Point, Look] = {}
        self._began_s = time.monotonic()

    def opened(self, folder: Path) -> None:
        """Print the sweep, the folder, and that the workers are being started."""
        sweep, effort = self._sweep, self._sweep.effort
        shared = parts(sweep.points[0], set(POINT_COLUMNS) - self._varying)
        self._screen.say(
            f"sweep {sweep.name}{f', shard {sweep.shard}' if sweep.shard else ''}: "
            f"{counted([self._total], 'point', 'points')} × "
            f"{counted([len(sweep.implementations)], 'implementation', 'implementations')}"
            f"{f' and {CONTROL}' if sweep.measured != sweep.implementations else ''}, "
            f"{_effort(effort, self._total)}, "
            f"{' '.join(shared)}"
        )
        self._screen.say(f"results go to {folder}")
        self._warn_of_memory()
        show = self._screen.move if self._screen.is_terminal else self._screen.say
        show("starting worker processes …")

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
            self._screen.say(f"warning: {warning}")
        self._began_s = time.monotonic()

    def races(self, end_s: float) -> None:
        """Take note that a race ends at this time of the monotonic clock, at the latest."""
        self._time_left = Until(end_s)

    def looked(self, point: Point, look: "Look", rows: "pd.DataFrame") -> None:
        """Show what a look at a point says: its line after the first one, and again once it is answered.

        The line's number counts the points that were looked at, and then those that are answered.
        """
        before = self._racing.get(point)
        self._racing[point] = look
        self._done += before is None
        self._number = self._done if before is None else self._answered
        if before is None or (look.is_answered and not before.is_answered):
            self._print(rows)

    def heard(self, point: Point, process: int, implementation: str, stage: str) -> None:
        """Show the progress that a worker reports."""
        left = self._time_left.left_s(point, time.monotonic() - self._began_s, process)
        cells = [
            f"[{min(self._done + 1, self._total)}/{self._total}] {differences(point, self._varying) or point.layer}",
            f"{implementation}: {stage}" if implementation else stage,
            self._standing(point, process),
            *([f"~{units.duration(left)} left"] if left is not None else []),
        ]
        self._screen.move(SEPARATOR.join(cells))

    @property
    def _answered(self) -> int:
        """The number of points that a race has answered."""
        return sum(look.is_answered for look in self._racing.values())

    def _standing(self, point: Point, process: int) -> str:
        """Return where a point stands: its process, and in a race who is named so far and how many are left."""
        planned, look = self._sweep.effort.processes, self._racing.get(point)
        if look is None or not look.left:
            return f"process {process + 1}{f' of {planned}' if process < planned else ''}"
        return f"{look.named} so far, {len(look.left)} left, within {units.percent(look.bound)}"

    def finished(self, rows: "pd.DataFrame") -> None:
        """Print the line of a point that is done, unless it was printed when it was answered."""
        point = Case.from_columns({str(name): value for name, value in rows.iloc[0].items()}).point
        look = self._racing.get(point)
        if look is None:
            self._count(point)
        self._number = self._done
        if look is None or not look.is_answered:
            self._print(rows)

    def close(self, *, keep: bool = False) -> None:
        """End what moves; with `keep` the lines of points stay, which here they always do."""
        del keep
        self._screen.clear()

    def _count(self, point: Point) -> None:
        """Note that a point is done, and how long it took."""
        now_s = time.monotonic()
        self._time_left.finished(point, now_s - self._began_s)
        self._began_s = now_s
        self._done += 1
        self._number = self._done

    def _print(self, rows: "pd.DataFrame") -> None:
        from bench.show.terminal.progress_line import point_line

        baseline, left_s = self._sweep.baseline, self._time_left.left_s()
        line = point_line(self._number, self._total, left_s, rows, baseline, varying=self._varying, colour=self._colour)
        if not (rows["status"] == "ok").any():
            line = SEPARATOR.join(line.split(SEPARATOR)[:2])  # the number of failures suffices
        self._screen.line(fitted(line, failed(rows["status"]), self._screen.width))


class LogProgress(Progress):
    """Prints one line for each point, short enough for a log."""

    def _print(self, rows: "pd.DataFrame") -> None:
        from bench.show.terminal.summary import at_point, log_line

        is_open = self._done < self._total or self._answered < len(self._racing)
        left = units.duration(self._time_left.left_s()) if is_open else ""
        at = at_point(rows, self._varying)
        self._screen.line(log_line(at, self._number, self._total, left, self._sweep.baseline, LOG_LINE))


class QuietProgress(Progress):
    """Prints nothing but warnings: the end of the run says what it found."""

    def opened(self, folder: Path) -> None:
        """Print nothing."""

    def heard(self, point: Point, process: int, implementation: str, stage: str) -> None:
        """Print nothing."""

    def _print(self, rows: "pd.DataFrame") -> None:
        pass


def _effort(effort: Effort, points: int) -> str:
    """Return how long and how surely a sweep measures."""
    if effort.race:
        most = units.duration(effort.seconds(points))
        return f"a race to {units.percent(effort.bound, trim=True)} within {most}"
    spread = f" over {units.duration(effort.spread_s)}" if effort.spread_s else ""
    return f"{counted([effort.processes], 'process', 'processes')}{spread}"


def failed(statuses: Iterable[str]) -> str:
    """Return the numbers of cases by status, without those that are ok: `1 incorrect, 2 unsupported`."""
    counts = Counter(status for status in statuses if status != "ok")
    return ", ".join(f"{count} {status}" for status, count in counts.items())


def fitted(line: str, failures: str, width: int) -> str:
    """Return a point's line cut to a width: its name, the verdict and the failures, then the details that fit.

    The line may have ANSI codes. No word is broken.
    """
    from rich.text import Text

    from bench.show.terminal.console import on_one_line

    name, verdict, *details = Text.from_ansi(line).split(SEPARATOR)
    cells = [name, verdict, *([Text(failures)] if failures else []), *details]
    least = 2 + bool(failures)
    while len(cells) > least and _width(cells) > width:
        cells.pop()
    room = width - (_width(cells) - verdict.cell_len)
    cells[1] = Text(shortened(verdict.plain, room), verdict.spans[0].style if verdict.spans else "")
    whole = Text(SEPARATOR).join(cells)
    return on_one_line(whole, colour=True) if "\x1b" in line else whole.plain


def shortened(text: str, width: int) -> str:
    """Return the whole words of a text that fit into a width, with `…` if words are left out."""
    if len(text) <= width:
        return text
    return text[: max(0, width - 1)].rpartition(" ")[0].rstrip(" |,:") + " …"


def _width(cells: "list[Text]") -> int:
    return sum(cell.cell_len for cell in cells) + len(SEPARATOR) * (len(cells) - 1)
