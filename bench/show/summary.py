"""The end of a run: what to use, point by point, what to mind, and where everything is."""

import shlex
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import pandas as pd

from bench.analyse.conclusions import Change, CoreChoice, gain
from bench.analyse.growth import has_series
from bench.show import answer as say
from bench.show import point_line
from bench.show.answer import At
from bench.show.blocks import BAD, GAP, HEAD, PLAIN, QUIET, WARNING, Block, Lines, Table
from bench.show.command_text import python
from bench.show.failures import few, reasons
from bench.show.point_text import LONGEST_NAME, counted, names, symbols
from bench.show.precision_text import in_words
from bench.show.rows import is_measured, plain
from bench.store import units

WORTH = 0.03
"""The least gain of other cores over sdpa at which a run names the command that exports them."""

MOST_LINES = 40
"""The most points that are listed at the end; show lists all."""

MOST_WARNINGS, MOST_REASONS = 2, 3
"""The most kinds of warnings and of failures that are told in words at the end."""

FEW = 0.1
"""A warning about a smaller share of the measured cases stands in the table and on the page alone."""

WIDEST = 120
"""The end of a run takes no more of a wide terminal."""

LONGEST_REASON = 200
"""The reason of a failure is cut to this number of characters; the long table has all of it."""

BOUNDS = (
    "fastest: all others are shown to be slower, the next one by so much. use: others may be faster, by so much at "
    "most. With 95 % probability all bounds of a point are right. They are those of this run: on another day, the ratio"
    " of two kernels can differ by 1 to 5 % (--spread 1h measures over an hour)."
)
"""What the bounds say."""

OF_SPEED = ("D", "S")
"""The letters that the sentence about the machine tells."""


def blocks(whole: pd.DataFrame, baseline: str | None, changes: Sequence[Change] = ()) -> Iterator[Block]:
    """Yield the end of a run: the answer, a line for each point, failures, and warnings.

    `whole` is the table with the rows of the control, `changes` are those of precision.
    """
    points = say.points_of(whole)
    labels = names([at.point for at in points], LONGEST_NAME)
    yield Lines([" ".join(say.answer(points, baseline))], HEAD)
    yield GAP
    yield Table(point_line.columns(baseline), [point_line.named(at, labels) for at in points[:MOST_LINES]])
    yield Lines([symbols([at.point for at in points]), BOUNDS], QUIET)
    if len(points) > MOST_LINES:
        yield Lines([f"… and {len(points) - MOST_LINES} more points"])
    yield Lines(in_words(whole, changes))
    if any(at.failed for at in points):
        yield Lines([say.failures(points)], WARNING)
        yield Lines(_reasons(points), BAD, is_list=True, indent=2)
    is_quiet, machine = say.machine(whole)
    yield Lines([machine] if machine else [], PLAIN if is_quiet else WARNING)
    yield Lines([*_warnings(whole)], WARNING)


def where(folder: Path, page: Path | None, choices: Sequence[CoreChoice] = ()) -> list[str]:
    """Return where the page is, or the folder without one, and the commands that go on from there."""
    path = shlex.quote(str(folder))
    return [
        *for_programs(choices, folder),
        f"The page: {page}" if page else f"Everything is in {folder}",
        f"The long table: {python()} -m bench show {path}",
    ]


def for_programs(choices: Sequence[CoreChoice], folder: Path) -> list[str]:
    """Return the command that exports the choices of a run, if they are shown to bring something over sdpa."""
    if (share := gain(choices)) < WORTH:
        return []
    faster = f"Another core is at least {units.percent(share, trim=True)} faster than sdpa somewhere"
    return [f"{faster}; for your programs: {python()} -m bench export {shlex.quote(str(folder))}"]


def closing(table: pd.DataFrame, folder: Path, pictures: Collection[Path], changes: Sequence[Change] = ()) -> list[str]:
    """Return the files of a run, what changes of precision bring, and the commands that show more.

    A picture counts once, however many files it has.
    """
    path = shlex.quote(str(folder))
    number = len({picture.stem for picture in pictures})
    plots = [counted([number], "picture", "pictures")] if number else []
    files = ", ".join(["results.csv", "journal.jsonl", "environment.json", *plots])
    lines = [f"Everything is in {path}: {files}."]
    if has_series([row for row in plain(table) if is_measured(row)]):
        lines.append(f"How it grows, and where the fastest changes: {python()} -m bench scaling {path}")
    if changes:
        lines += [*in_words(table, changes), f"Precisions in a table: {python()} -m bench show --across dtype {path}"]
    return lines


def _reasons(points: Sequence[At]) -> list[str]:
    """Return why cases failed that were tried, each reason once."""
    failed = [row for at in points for row in at.rows if row["status"] not in ("ok", "skipped")]
    return [point_line.cut(line, LONGEST_REASON) for line in few(reasons(failed), MOST_REASONS)]


def _warnings(whole: pd.DataFrame) -> Iterator[str]:
    warned = say.warnings(whole)
    if of_speed := [each.flag for each in warned if each.flag.letter in OF_SPEED]:
        advice = next((flag.advice for flag in of_speed if flag.advice), "quiet the machine, and measure again")
        yield f"What helps: {advice}."
    others = [each for each in warned if each.flag.letter not in OF_SPEED and each.rows >= FEW * each.of]
    yield from (f"{each}." for each in others[:MOST_WARNINGS])
