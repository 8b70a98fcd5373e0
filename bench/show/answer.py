"""The answer of a run in sentences: what to use, how sure that is, what failed, whether the machine was quiet."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from bench.analyse.fastest import ALONE, NOTHING, WITHOUT_INTERVALS, Outcome
from bench.analyse.ranking import NOT_DECIDED, TIE, WINNER
from bench.plan.case import Point
from bench.show import intervals
from bench.show.control_text import unproven
from bench.show.fastest_text import WITHIN, any_of, outcome_of, words
from bench.show.point_text import counted, differences, varying
from bench.show.rows import UNTRIED, Row, by_point, measured, unmeasured
from bench.show.terminal.flags import SLOW, TARGET, Flag, disturbed, flags
from bench.stats.estimates import Interval
from bench.store import units
from bench.store.table import baseline_of, without_control

MEASURED = ("measured case", "measured cases")
"""What warnings count, one and several."""

MOST_POINTS = 3
"""At most this number of points is named in a sentence; more are counted."""


@dataclass(frozen=True)
class At:
    """What a run says of one point: its rows, its name among the others, and its outcome."""

    point: Point
    label: str
    rows: tuple[Row, ...]
    outcome: Outcome

    @property
    def first(self) -> Row | None:
        """The row of the fastest, or of the first of those that may be; None if nothing was measured."""
        names = self.outcome.names[:1]
        return next((row for row in measured(self.rows) if row["implementation"] in names), None)

    @property
    def failed(self) -> int:
        """The number of cases without a time."""
        return len(unmeasured(self.rows))


@dataclass(frozen=True)
class Warned:
    """A flag, the number of rows that have it, and of those that could have."""

    flag: Flag
    rows: int
    of: int

    def __str__(self) -> str:
        """Return the warning in words, with what to do: `3 of 84 measured cases: …; measure again`."""
        advice = f"; {self.flag.advice}" if self.flag.advice else ""
        return f"{self.rows} of {counted([self.of], *MEASURED)}: {self.flag.meaning}{advice}"


def points_of(table: pd.DataFrame) -> list[At]:
    """Return what a table of results says of each of its points, in their order."""
    found = by_point(without_control(table))
    different = varying(found)
    return [At(point, _label(point, different), tuple(rows), outcome_of(rows)) for point, rows in found.items()]


def answer(points: Sequence[At], baseline: str | None) -> list[str]:
    """Return in one or two sentences who is the fastest, by how much, and how sure that is."""
    decided = [at for at in points if at.outcome.says != NOTHING]
    if not decided:
        return [
            f"Nothing was measured: none of {counted([sum(len(at.rows) for at in points)], 'case', 'cases')} is ok."
        ]
    if len(decided) == 1:
        return [_at_one_point(decided[0], baseline)]
    return [*_best(decided, baseline), _sureness(decided)]


def failures(points: Sequence[At]) -> str:
    """Return in a sentence which cases have no time."""
    rows = [row for at in points for row in at.rows]
    lost = [row for row in rows if row["status"] != "ok"]
    if not lost:
        return f"All {counted([len(rows)], 'case', 'cases')} were measured."
    kinds: dict[str, Counter[str]] = {}
    for row in lost:
        kinds.setdefault(row["status"], Counter())[row["implementation"]] += 1
    parts = [
        f"{sum(names.values())} {status} ({', '.join(_at_points(*of) for of in names.items())})"
        for status, names in sorted(kinds.items(), key=lambda kind: kind[0] in UNTRIED)
    ]
    names = len({row["implementation"] for row in rows})
    of = f" ({len(points)} points × {names} implementations)" if len(rows) == len(points) * names > names > 1 else ""
    return f"{len(lost)} of {counted([len(rows)], 'case', 'cases')}{of} have no time: {'; '.join(parts)}."


def machine(table: pd.DataFrame, target: float = TARGET) -> tuple[bool, str]:
    """Return whether the machine was quiet, and in a sentence what says so.

    `table` has the rows of the control, if the run has one.
    """
    warned = {each.flag.letter: each for each in warnings(table, target)}
    is_unproven = bool(unproven(table))
    doubts = ["The control shows differences where there are none."] if is_unproven else []
    state = "not quiet" if is_unproven else "slow"
    if busy := warned.get(disturbed(1).letter):
        state, rows_of = "not quiet", f"{busy.rows} of {counted([busy.of], *MEASURED)}"
        doubts.append(f"Other processes disturbed a quarter of the samples or more in {rows_of}.")
    if slow := warned.get(SLOW.letter):
        rows_of = f"{slow.rows} of {counted([slow.of], *MEASURED)}"
        doubts.append(f"In {rows_of} it ran at less than 75 % of the highest speed that was ever measured on it.")
    if doubts:
        return False, f"The machine was {state}. {' '.join(doubts)}"
    rows = [row for at in points_of(table) for row in measured(at.rows)]
    if not rows:
        return True, ""
    share = max((row["flagged_share"] or 0.0 for row in rows), default=0.0)
    has_control = bool((table["implementation"] == "control").any())
    checked = ", and the control shows no false difference" if has_control else ""
    return (
        True,
        f"The machine was quiet: at most {units.percent(share)} of the samples of a case were disturbed{checked}.",
    )


def warnings(table: pd.DataFrame, target: float = TARGET) -> list[Warned]:
    """Return each flag that rows have, with their number, the most frequent first."""
    rows = [row for at in points_of(table) for row in measured(at.rows)]
    raised = [flag for row in rows for flag in flags(row, target)]
    number = Counter(flag.letter for flag in raised)
    shortest = {flag.letter: flag for flag in sorted(raised, key=lambda flag: -len(flag.meaning))}
    return [Warned(shortest[letter], count, len(rows)) for letter, count in number.most_common()]


def fastest_cell(outcome: Outcome, width: float = math.inf) -> str:
    """Return who is the fastest in very few words: `sdpa`, `tie: sdpa, mha` or `sdpa or mha?`.

    If the words are wider than `width`, fewer are named and the others counted.
    """
    if outcome.says == WINNER:
        return outcome.names[0]
    if outcome.says in (TIE, NOT_DECIDED):
        cells = [_possible(outcome, named) for named in (len(outcome.names), 2, 1)]
        return next((cell for cell in cells if len(cell) <= width), cells[-1])
    if outcome.says == WITHOUT_INTERVALS:
        return f"{outcome.names[0]}? (one process)"
    return f"{outcome.names[0]} ({ALONE})" if outcome.says == ALONE else outcome.says


def _possible(outcome: Outcome, named: int) -> str:
    """Return the names of those that tie, or of which each may be the fastest; of so many, the others are counted."""
    rest = len(outcome.names) - named
    names = [*outcome.names[:named], *([f"{rest} {'other' if rest == 1 else 'others'}"] if rest > 0 else [])]
    return f"{TIE}: {', '.join(names)}" if outcome.says == TIE else f"{any_of(names)}?"


def speedup_cell(row: Row | None, baseline: str | None) -> str:
    """Return a row's speed-up with its interval, `baseline` for the baseline, empty if there is none."""
    if row is None:
        return ""
    if row["implementation"] == baseline:
        return "baseline"
    return "" if row["speedup"] is None else intervals.ratio(speedup_of(row))


def speedup_of(row: Row) -> Interval:
    """Return the speed-up of a row with its interval, NaN where it isn't known."""
    return Interval(
        *(math.nan if row[name] is None else float(row[name]) for name in ("speedup", "speedup_low", "speedup_high"))
    )


def baseline_in(table: pd.DataFrame) -> str | None:
    """Return the implementation that speed-ups refer to, None if the table doesn't name exactly one."""
    return baseline_of(without_control(table))


def _at_points(name: str, number: int) -> str:
    return f"{name} at {counted([number], 'point', 'points')}"


def _label(point: Point, different: Collection[str]) -> str:
    return differences(point, different) or "the only point"


def _at_one_point(at: At, baseline: str | None) -> str:
    outcome, first = at.outcome, at.first
    over = _over(first, baseline)
    if outcome.says == WINNER:
        return f"Use {outcome.names[0]}: it is shown to be the fastest ({words(outcome).partition(', ')[2]}){over}."
    if outcome.says == TIE:
        return f"Use {any_of(outcome.names)}: they are {WITHIN} of each other, and all others are slower{over}."
    if outcome.says == NOT_DECIDED:
        return f"It is not decided which is the fastest: {words(outcome).partition(': ')[2]}{over}."
    return f"{words(outcome).capitalize()}{over}."


def _over(row: Row | None, baseline: str | None) -> str:
    """Return a clause with the speed-up over the baseline, empty for the baseline itself."""
    if row is None or baseline is None or row["implementation"] == baseline or row["speedup"] is None:
        return ""
    return f"; {row['implementation']} is {speedup_cell(row, baseline)} as fast as {baseline}"


def _best(points: Sequence[At], baseline: str | None) -> Iterator[str]:
    """Yield the sentence about the implementation that is beaten at the fewest points."""
    name, at_best = _choice(points)
    others = [at for at in points if name not in at.outcome.names]
    ratios = [row["speedup"] for at in at_best for row in at.rows if row["implementation"] == name and row["speedup"]]
    by = ""
    if baseline and name != baseline and ratios:
        by = f" There it is {_range(name, at_best, baseline)}."
    where = f"all {len(points)} points" if not others else f"{len(at_best)} of {len(points)} points"
    verb = "Stay with" if name == baseline else "Use"
    yield f"{verb} {name}: at {where} no other is shown to be faster.{by}{_elsewhere(others)}"


def _range(name: str, points: Sequence[At], baseline: str) -> str:
    """Return where an implementation has its smallest and its largest speed-up, and how sure these are."""
    found = [(at, row) for at in points for row in at.rows if row["implementation"] == name and row["speedup"]]
    ends = [choose(found, key=lambda pair: float(pair[1]["speedup"])) for choose in (min, max)]
    low, high = (f"{speedup_cell(row, baseline)} ({at.label})" for at, row in ends)
    return f"{low} as fast as {baseline}" if low == high else f"from {low} to {high} as fast as {baseline}"


def _choice(points: Sequence[At]) -> tuple[str, list[At]]:
    """Return the implementation that may be the fastest at most points, and these points.

    Among several it is the one with the most wins, then the one that is faster on the whole.
    """
    names = dict.fromkeys(name for at in points for name in at.outcome.names)

    def merit(name: str) -> tuple[int, int, float]:
        may = [at for at in points if name in at.outcome.names]
        wins = sum(at.outcome.says == WINNER for at in may)
        logs = [
            math.log(row["speedup"])
            for at in may
            for row in at.rows
            if row["implementation"] == name and row["speedup"]
        ]
        return len(may), wins, sum(logs)

    best = max(names, key=merit)
    return best, [at for at in points if best in at.outcome.names]


def _elsewhere(points: Sequence[At]) -> str:
    """Return who is the fastest at the points where the choice is beaten."""
    if not points:
        return ""
    by_name: dict[str, list[str]] = {}
    for at in points:
        by_name.setdefault(any_of(at.outcome.names), []).append(at.label)
    parts = [f"{name} at {_named(labels)}" for name, labels in by_name.items()]
    return f" Faster elsewhere: {'; '.join(parts)}."


def _named(labels: Sequence[str]) -> str:
    return ", ".join(labels) if len(labels) <= MOST_POINTS else f"{len(labels)} points"


def _sureness(points: Sequence[At]) -> str:
    """Return how many points are decided."""
    says = Counter(at.outcome.says for at in points)
    found = [(kind, words) for kind, words in SURENESS.items() if says[kind]]
    if len(found) == 1:
        return f"At all {len(points)} points {found[0][1]}."
    parts = [f"at {counted([says[kind]], 'point', 'points')} {words}" for kind, words in found]
    return f"A{'; '.join(parts)[1:]}."


SURENESS: Mapping[str, str] = {
    WINNER: "a winner is shown",
    TIE: f"a tie is shown ({WITHIN})",
    NOT_DECIDED: "it is not decided which is the fastest; more processes may tell",
    WITHOUT_INTERVALS: "one process measured, so nothing is shown",
    ALONE: "only one implementation was measured",
}
"""What is said of the points with each outcome."""
