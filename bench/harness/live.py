"""The progress of a sweep in a terminal: the point at work, a bar with the time left, a short line for each point."""

from typing import IO, cast

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from bench.harness.progress import LogProgress, Screen, shortened
from bench.machine import monotonic
from bench.plan.case import Point
from bench.plan.names import is_own
from bench.plan.sweep import Sweep
from bench.show import blocks, summary
from bench.show.answer import At
from bench.show.terminal.console import THEME, Fitting
from bench.store import units

BESIDE = 6
"""The lines of the display that are no points."""

BAR = 30
"""The width of the bar in characters."""

OFTEN_S = 0.2
"""The display is drawn again at most this often."""


class LiveProgress(LogProgress):
    """A display that is rewritten in place: it never grows beyond the terminal, and goes at the end.

    With `detail` of 1 the lines of points are printed above it, and stay.
    """

    def __init__(self, sweep: Sweep, total: int, screen: Screen, *, height: int, detail: int = 0) -> None:
        super().__init__(sweep, total, screen, detail=detail)
        self._now = ""
        self._left_s: float | None = None
        self._started_s = monotonic.now_s()
        self._drawn_s = 0.0
        self._most = max(1, height - BESIDE)
        self._own = [name for name in sweep.implementations if is_own(name)]
        console = Console(
            file=cast(IO[str], screen),
            force_terminal=True,
            width=screen.width,
            height=height,
            highlight=False,
            theme=THEME,
        )
        self._live = Live(
            console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False,
            vertical_overflow="crop",
        )  # fmt: skip

    def _start(self, words: str) -> None:
        self._now = words
        self._live.start()
        self._draw()

    def _say(self, text: str) -> None:
        self._live.console.print(Text(text, "yellow" if text.startswith("warning: ") else ""))

    _line = _say

    def heard(self, point: Point, process: int, implementation: str, stage: str) -> None:
        """Show the progress that a worker reports."""
        super().heard(point, process, implementation, stage)
        work = f"{implementation}: {stage}" if implementation else stage
        self._now = f"{self._labels[point]} · {work} · {self._standing(point, process)}"
        now_s = monotonic.now_s()
        self._left_s = self._time_left.left_s(point, now_s - self._began_s, process)
        if now_s - self._drawn_s >= OFTEN_S:
            self._draw()

    def _standing(self, point: Point, process: int) -> str:
        """Return where a point stands: its process, and in a race who is named so far and how many are left."""
        planned, look = self._sweep.effort.processes, self._racing.get(point)
        if look is None or not look.left:
            return f"process {process + 1}{f' of {planned}' if process < planned else ''}"
        return f"{look.named} so far, {len(look.left)} left, within {units.percent(look.bound)}"

    def close(self, *, keep: bool = False) -> None:
        """End the display; with `keep` the lines of points stay."""
        if not self._live.is_started:
            return
        self._live.stop()
        if keep and self._points and not self._detail:
            self._live.console.print(self._table([*self._points.values()]))

    def _show(self, at: At, is_news: bool) -> None:
        self._left_s = self._time_left.left_s()
        if self._detail:
            super()._show(at, is_news)
        self._draw()

    def _draw(self) -> None:
        self._drawn_s = monotonic.now_s()
        points = [] if self._detail else [*self._points.values()]
        above = len(points) - self._most
        earlier = [Text(f"… {above} earlier points", "dim")] if above > 0 else []
        lines = [self._table(points[-self._most :])] if points else []
        self._live.update(Group(*self._head(), *earlier, *lines), refresh=True)

    def _head(self) -> list[RenderableType]:
        """Return the point at work, and the bar with the time left."""
        passed_s = monotonic.now_s() - self._started_s
        done = self._done / self._total if self._left_s is None else passed_s / (passed_s + self._left_s or 1.0)
        left = "" if self._left_s is None else f" · about {units.duration(self._left_s)} left"
        bar = ProgressBar(total=1.0, completed=min(done, 1.0), width=BAR)
        is_looked_at = bool(self._racing) and self._done >= self._total
        where = f"answered {self._answered}" if is_looked_at else f"point {min(self._done + 1, self._total)}"
        now = shortened(f"{where} of {self._total}: {self._now}", self._screen.width - 1)
        words = Text(f" {done:.0%}{left} · {units.duration(passed_s)} so far")
        beside = Table.grid()
        beside.add_row(bar, words)
        return [Text(now, "bold"), beside]

    def _table(self, lines: list[At]) -> Fitting:
        return Fitting(blocks.Table(summary.point_columns(self._sweep.baseline, self._own), lines))
