"""The end of a run in the terminal, and the short line of a point: what to use, point by point, and what to mind."""

import shlex
import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from rich.text import Text

from bench.analyse.precision import Change
from bench.plan.case import Point
from bench.show import answer as say
from bench.show.answer import At
from bench.show.choice_text import choice_of, words
from bench.show.command_text import python
from bench.show.point_text import counted, differences, symbols
from bench.show.precision_text import in_words
from bench.show.rows import by_point, reason
from bench.show.terminal.styles import BAD, QUIET, WARNING, style_of_choice

MOST_LINES = 40
"""The most points that are listed at the end; show lists all."""

MOST_WARNINGS, MOST_REASONS = 2, 3
"""The most kinds of warnings and of failures that are told in words at the end."""

FEW = 0.1
"""A warning about a smaller share of the measured cases stands in the table and on the page alone."""

WIDEST = 100
"""Sentences are wrapped at this width, however wide the terminal is."""

LEAST_LABEL, MOST_LABEL, RATIO, LEAST_WORDS = 12, 34, 19, 12
"""The narrowest and widest column of points, the width of a speed-up with its interval, and the narrowest column of
choices, in characters."""

WIDEST_LINE = 120
"""Lines of points take no more of a wide terminal."""

NARROW, SHORT_RATIO = 100, 8
"""In a narrower terminal speed-ups have no interval, so that the words have room."""

USE = "what to use, and what it can cost"
"""The heading of the column of choices."""

BOUNDS = (
    "fastest: all others are shown to be slower, the next one by so much. use: others may be faster, by so much at "
    "most. With 95 % probability all bounds of a point are right. They are those of this run: on another day, the ratio"
    " of two kernels can differ by 1 to 5 % (--spread 1h measures over an hour)."
)
"""What the bounds say."""

OF_SPEED = ("D", "S")
"""The letters that the sentence about the machine tells."""


@dataclass(frozen=True)
class Widths:
    """The widths of the columns of points, of what to use, and of speed-ups."""

    label: int
    words: int
    ratio: int


def widths(labels: Collection[str], width: int) -> Widths:
    """Return widths with which a line fits into a width."""
    label = min(MOST_LABEL, max(LEAST_LABEL, *map(len, labels))) if labels else LEAST_LABEL
    ratio = RATIO if width >= NARROW else SHORT_RATIO
    return Widths(label, max(LEAST_WORDS, min(WIDEST_LINE, width) - label - ratio - 4), ratio)


def point_line(at: At, baseline: str | None, columns: Widths) -> Text:
    """Return one short line of a point: what to use and what it can cost, its speed-up, and how many failed."""
    failed = f" ({at.failed} not timed)" if at.failed else ""
    room = columns.words - len(failed)
    cell = _cut(words(at.choice, room), room) + failed
    ratio = say.speedup_cell(at.first, baseline)
    return Text.assemble(
        f"{_cut(at.label, columns.label):<{columns.label}}  ",
        (f"{cell:<{columns.words}}  ", style_of_choice(at.choice)),
        ratio if columns.ratio == RATIO else ratio.partition(" ")[0],
    )


def headings(baseline: str | None, columns: Widths) -> Text:
    """Return the line above the lines of points."""
    over = _cut(f"its speed-up/{baseline}" if baseline and columns.ratio == RATIO else "speed-up", columns.ratio)
    return Text(f"{'point':<{columns.label}}  {_cut(USE, columns.words):<{columns.words}}  {over}", QUIET)


def at_point(rows: pd.DataFrame, varying: Collection[str]) -> At:
    """Return what the rows of one point say; `varying` names the columns in which the points of the sweep differ."""
    ((point, members),) = by_point(rows).items()
    return At(point, label(point, varying), tuple(members), choice_of(members))


def label(point: Point, varying: Collection[str]) -> str:
    """Return the name of a point among those of a sweep."""
    return differences(point, varying) or point.layer


def log_line(at: At, position: int, total: int, left: str, baseline: str | None, width: int) -> str:
    """Return one line of a log on a point: `[3/12] N=577: fastest: sdpa, by 2 to 6%, 1.48x [1.40, 1.57] (~4m left)`."""
    ratio = say.speedup_cell(at.first, baseline)
    of = f", {ratio}" if ratio and ratio != "baseline" else ""
    tail = f"{of}{f'; {at.failed} not timed' if at.failed else ''}{f' (~{left} left)' if left else ''}"
    place = f"[{position:>{len(str(total))}}/{total}] "
    least = len(words(at.choice, 0))
    head = f"{place}{_cut(at.label, max(LEAST_LABEL, width - len(place) - len(tail) - least - 2))}: "
    room = max(LEAST_WORDS, width - len(head) - len(tail))
    return _cut(head + _cut(words(at.choice, room), room) + tail, width)


def summary(
    whole: pd.DataFrame,
    baseline: str | None,
    folder: Path,
    page: Path | None,
    width: int,
    changes: Sequence[Change] = (),
) -> Iterator[Text]:
    """Yield the lines at the end of a run: the answer, a line for each point, warnings, and where the page is.

    `whole` is the table with the rows of the control. `page` is None if there is none. `changes` are those of
    precision.
    """
    points = say.points_of(whole)
    wide = min(width, WIDEST)
    yield from _wrapped(" ".join(say.answer(points, baseline)), wide, "bold")
    yield Text()
    columns = widths([at.label for at in points], width)
    yield headings(baseline, columns)
    for at in points[:MOST_LINES]:
        yield point_line(at, baseline, columns)
    yield from _wrapped(symbols([at.point for at in points]), wide, QUIET)
    yield from _wrapped(BOUNDS, wide, QUIET)
    if len(points) > MOST_LINES:
        yield Text(f"… and {len(points) - MOST_LINES} more points")
    for sentence in in_words(whole, changes):
        yield from _wrapped(sentence, wide, "")
    if any(at.failed for at in points):
        yield from _wrapped(say.failures(points), wide, WARNING)
        yield from _reasons(points, wide)
    is_quiet, machine = say.machine(whole)
    if machine:
        yield from _wrapped(machine, wide, "" if is_quiet else WARNING)
    yield from _warnings(whole, wide)
    yield Text(f"The page: {page}" if page else f"Everything is in {folder}")
    yield Text(f"The long table: {python()} -m bench show {shlex.quote(str(folder))}")


def _reasons(points: Sequence[At], width: int) -> Iterator[Text]:
    """Yield why cases failed that were tried, each reason once."""
    kinds: dict[str, int] = {}
    for at in points:
        for row in at.rows:
            if row["status"] not in ("ok", "skipped"):
                words = f"{row['implementation']} {row['status']}: {reason(row) or 'no detail'}"
                kinds[words] = kinds.get(words, 0) + 1
    for words, count in list(kinds.items())[:MOST_REASONS]:
        yield Text(_cut(f"  {words}" + (f" (at {count} points)" if count > 1 else ""), 2 * width), BAD)
    if len(kinds) > MOST_REASONS:
        yield Text(f"  and {counted([len(kinds) - MOST_REASONS], 'other reason', 'other reasons')}", BAD)


def _warnings(whole: pd.DataFrame, width: int) -> Iterator[Text]:
    found = [each for each in say.warnings(whole) if each.flag.letter not in OF_SPEED and each.rows >= FEW * each.of]
    of_speed = [each.flag for each in say.warnings(whole) if each.flag.letter in OF_SPEED]
    if of_speed:
        advice = next((flag.advice for flag in of_speed if flag.advice), "quiet the machine, and measure again")
        yield from _wrapped(f"What helps: {advice}.", width, WARNING)
    for each in found[:MOST_WARNINGS]:
        yield from _wrapped(f"{each}.", width, WARNING)


def _wrapped(text: str, width: int, style: str) -> Iterator[Text]:
    for line in textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False):
        yield Text(line, style)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(0, width - 1)]}…"
