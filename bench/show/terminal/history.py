"""A history as a table in the terminal: a row for each case, a column for each run."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from bench.analyse.history import Entry, History
from bench.plan.case import Point
from bench.show import intervals
from bench.show.point_text import differences, shared, varying
from bench.show.terminal.console import table
from bench.show.terminal.styles import BAD, GOOD, QUIET

ARROWS = {"faster": "▲", "slower": "▼"}
"""The mark of a step."""

RECENT = 6
"""The most runs in the terminal, the latest; the page has all."""


def render(of: History) -> RenderableType:
    """Return the speed-ups of each case in the latest runs; a mark says that one is shown to have changed."""
    points = dict.fromkeys(case.point for case in of.entries)
    return Group(*_head(of), *(part for point in points for part in _point(of, point, varying(points))))


def label(of: History, number: int) -> str:
    """Return the name of a run in a history: its day and its name."""
    run = of.runs[number]
    return f"{run.started_at[:10]} {run.name}".strip()


def cell(entry: Entry | None) -> Text:
    """Return the speed-up of a case in a run, with the mark of its step."""
    if entry is None:
        return Text("")
    style = {"faster": GOOD, "slower": BAD}.get(entry.step, "")
    return Text(f"{intervals.ratio(entry.speedup)}{f' {ARROWS[entry.step]}' if entry.step else ''}", style)


def _head(of: History) -> Iterator[RenderableType]:
    steps = [entry.step for entries in of.entries.values() for entry in entries.values() if entry.step]
    yield Text(
        f"{len(of.runs)} runs, {len(of.entries)} cases: {steps.count('faster')} became faster, "
        f"{steps.count('slower')} slower, from one run to the next",
        "bold",
    )
    if points := {case.point for case in of.entries}:
        yield Text(shared(points))
    for number in _recent(of):
        yield Text(f"  {number + 1}: {label(of, number)}, {of.runs[number].version}", QUIET)
    yield Text(
        f"Speed-ups over {of.baseline} of the same run. ▲ faster, ▼ slower: shown, by more than 1 %.",
        QUIET,
    )


def _point(of: History, point: Point, different: set[str]) -> Iterator[RenderableType]:
    numbers = _recent(of)
    made = table(differences(point, different) or "the only point", texts=[f"run {number + 1}" for number in numbers])
    for case, entries in of.entries.items():
        if case.point == point:
            made.add_row(f"  {case.implementation}", *(cell(entries.get(number)) for number in numbers))
    yield Text()
    yield made


def _recent(of: History) -> list[int]:
    return list(range(len(of.runs)))[-RECENT:]
