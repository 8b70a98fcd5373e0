"""A history as blocks: a table for each point with a row for each implementation, and a column for each run."""

from bench.analyse.comparison import Entry, History
from bench.plan.case import Case, Point
from bench.show import intervals
from bench.show.blocks import BAD, GAP, GOOD, HEAD, PLAIN, QUIET, Block, Column, Lines, Table
from bench.show.text import names, shared

ARROWS = {"faster": "▲", "slower": "▼"}
"""The mark of a step."""

TONES = {"faster": GOOD, "slower": BAD}

RECENT = 6
"""The most runs in the terminal, the latest; the page has all."""


def head(of: History) -> list[Block]:
    """Return how many cases became faster and slower from one run to the next, and what all points share."""
    steps = [entry.step for entries in of.entries.values() for entry in entries.values() if entry.step]
    points = points_of(of)
    changes = f"{steps.count('faster')} became faster, {steps.count('slower')} slower, from one run to the next"
    return [
        Lines([f"{len(of.runs)} runs, {len(of.entries)} cases: {changes}"], HEAD),
        Lines([shared(points)] if points else []),
    ]


def blocks(of: History) -> list[Block]:
    """Return the speed-ups of each case in the latest runs; a mark says that one is shown to have changed."""
    recent = range(len(of.runs))[-RECENT:]
    return [
        *head(of),
        Lines([f"{number + 1}: {label(of, number)}, {of.runs[number].version}" for number in recent], QUIET, indent=2),
        Lines([f"Speed-ups over {of.baseline} of the same run. ▲ faster, ▼ slower: shown, by more than 1 %."], QUIET),
        *(part for point, name in names(points_of(of)).items() for part in (GAP, _table(of, point, name, recent))),
    ]


def points_of(of: History) -> list[Point]:
    """Return the points of a history, each once."""
    return [*dict.fromkeys(case.point for case in of.entries)]


def label(of: History, number: int) -> str:
    """Return the name of a run in a history: its day and its name."""
    run = of.runs[number]
    return f"{run.started_at[:10]} {run.name}".strip()


def _table(of: History, point: Point, name: str, numbers: range) -> Table:
    def run(number: int) -> Column:
        def entry(case: Case) -> Entry | None:
            return of.entries[case].get(number)

        return Column(f"run {number + 1}", lambda case: _text(entry(case)), tone=lambda case: _tone(entry(case)))

    cases = [case for case in of.entries if case.point == point]
    return Table([Column(name, lambda case: f"  {case.implementation}"), *map(run, numbers)], cases)


def _text(entry: Entry | None) -> str:
    """Return the speed-up of a case in a run, with the mark of its step."""
    return "" if entry is None else " ".join(filter(None, (intervals.ratio(entry.speedup), ARROWS.get(entry.step))))


def _tone(entry: Entry | None) -> str:
    return TONES.get(entry.step, PLAIN) if entry else PLAIN
