"""The answer of a run in sentences: what to use, what it can cost, what failed, how quiet the machine was."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from bench.analyse.control import control
from bench.analyse.flags import SLOW, Flag, disturbed, flags
from bench.analyse.standing import ALONE, FASTEST, NOTHING, SLOWER, Choice, is_for_profiles
from bench.plan.case import Point
from bench.plan.names import is_own
from bench.show import intervals
from bench.show.choice_text import MOST, choice_of, duration, listed, more, words
from bench.show.columns import latency_text
from bench.show.rows import UNTRIED, Row, by_point, measured, unmeasured
from bench.show.text import counted, differences, names, varying
from bench.stats.best import GOOD
from bench.stats.estimates import Interval
from bench.store import units
from bench.store.table import cases, without_control

MOST_POINTS = 3
"""At most this number of points is named in a sentence; more are counted."""


@dataclass(frozen=True)
class At:
    """What a run says of one point: its rows, its name among the others, and the implementation to use."""

    point: Point
    label: str
    rows: tuple[Row, ...]
    choice: Choice

    def row(self, name: str) -> Row | None:
        """Return the row of an implementation, None if it was not measured."""
        return next((row for row in measured(self.rows) if row["implementation"] == name), None)

    @property
    def first(self) -> Row | None:
        """The row of the one to use, None if nothing was measured."""
        return self.row(self.choice.name)

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

    @property
    def where(self) -> str:
        """The rows that have the flag, in words: `3 of 84 measured cases`."""
        return f"{self.rows} of {counted([self.of], 'measured case', 'measured cases')}"

    def __str__(self) -> str:
        """Return the warning in words, with what to do: `3 of 84 measured cases: …; measure again`."""
        return f"{self.where}: {'; '.join(filter(None, (self.flag.meaning, self.flag.advice)))}"


def points_of(table: pd.DataFrame) -> list[At]:
    """Return what a table of results says of each of its points, in their order."""
    rows_at = by_point(without_control(table))
    labels = names(rows_at)
    return [At(point, labels[point], tuple(rows), choice_of(rows)) for point, rows in rows_at.items()]


def answer(points: Sequence[At], baseline: str | None) -> list[str]:
    """Return in a few sentences what to use, what that can cost, and how it compares with the baseline."""
    chosen = [at for at in points if at.choice.standing != NOTHING]
    if not chosen:
        cases = counted([sum(len(at.rows) for at in points)], "case", "cases")
        return [f"Nothing was measured: none of {cases} is ok."]
    named = dict.fromkeys(at.choice.name for at in chosen if at.choice.name)
    if len(chosen) == 1:
        (at,) = chosen
        return [f"{_sentence(words(at.choice))}.", *_times_of([*named], chosen, baseline), *_of_own(chosen, baseline)]
    compared = [at for at in chosen if at.choice.standing != ALONE]
    if not compared:
        first = f"Nothing can be compared: only one implementation was measured at each point ({listed([*named])})."
        return [first, *_times_of([*named], chosen, baseline)]
    name = everywhere(compared)
    gain = _gain(name, compared, baseline)
    sentences = _use(name, compared), gain and f"{name} {gain}.", _sureness(compared), _few_processes(compared)
    return [*filter(None, [*sentences, _alone(chosen)]), *_of_own(chosen, baseline)]


def _times_of(names: Sequence[str], points: Sequence[At], baseline: str | None) -> Iterator[str]:
    """Yield for each of these implementations what a call takes, and its ratio to the baseline if it isn't that.

    Of several points those with the least and the most are named.
    """
    for name in names:
        pairs = [(at, row) for at in points if (row := at.row(name))]
        if not pairs:
            continue
        ends = [choose(pairs, key=lambda pair: float(pair[1]["latency_s"])) for choose in (min, max)]
        takes = _from_to([(latency_text(row), at) for at, row in ends], is_one=len(points) == 1)
        ratio = _gain(name, points, baseline)
        yield f"{name} takes {takes} a call{f'; it {ratio}' if ratio else ''}."


def _from_to(ends: Sequence[tuple[str, At]], *, is_one: bool) -> str:
    """Return a value with its point, or the two ends of a range with theirs; an only point needs no name."""
    low, high = (text if is_one else f"{text} ({at.label})" for text, at in ends)
    return low if low == high else f"from {low} to {high}"


def _of_own(points: Sequence[At], baseline: str | None) -> Iterator[str]:
    """Yield the time and the ratio of each implementation of a user's own that isn't named alone."""
    names = dict.fromkeys(str(row["implementation"]) for at in points for row in measured(at.rows))
    said = {points[0].choice.name} if len(points) == 1 else set()
    yield from _times_of([name for name in names if is_own(name) and name not in said], points, baseline)


def _alone(points: Sequence[At]) -> str:
    """Return at which points nothing was compared, empty if there are none."""
    alone = [at for at in points if at.choice.standing == ALONE]
    if not alone:
        return ""
    where = ", ".join(at.label for at in alone) if len(alone) <= MOST_POINTS else f"{len(alone)} other points"
    return f"Nothing is compared at {where}, where one implementation was measured."


def everywhere(points: Sequence[At]) -> str:
    """Return the implementation to use if one is to be chosen for all points, of which each compares some.

    Of those that were measured at most points it is the one whose upper bounds are least on the whole; a bound that is
    not known counts as the slowdown itself. Of several whose bounds are all GOOD or less it is the one that is named at
    most points.
    """
    names = dict.fromkeys(str(row["implementation"]) for at in points for row in measured(at.rows))

    def demerit(name: str) -> tuple[bool, int, float, int, float]:
        rows = [row for at in points if (row := at.row(name))]
        bounds = [row["slowdown_high"] or row["slowdown"] or 1.0 for row in rows]
        whole = sum(map(math.log, bounds))
        named = sum(at.choice.name == name for at in points)
        return is_for_profiles(name), -len(rows), whole if max(bounds) > GOOD else 0.0, -named, whole

    return min(names, key=demerit)


def failures(points: Sequence[At]) -> str:
    """Return in a sentence which cases have no time."""
    rows = [row for at in points for row in at.rows]
    lost = [row for row in rows if row["status"] != "ok"]
    cases = counted([len(rows)], "case", "cases")
    if not lost:
        return f"All {cases} were measured."
    parts = []
    for status in sorted({row["status"]: None for row in lost}, key=UNTRIED.__contains__):
        numbers = Counter(row["implementation"] for row in lost if row["status"] == status)
        where = ", ".join(f"{name} at {counted([number], 'point', 'points')}" for name, number in numbers.items())
        parts.append(f"{numbers.total()} {status} ({where})")
    names = len({row["implementation"] for row in rows})
    of = f" ({len(points)} points × {names} implementations)" if len(rows) == len(points) * names > names > 1 else ""
    return f"{len(lost)} of {cases}{of} have no time: {'; '.join(parts)}."


def machine(table: pd.DataFrame) -> tuple[bool, str]:
    """Return whether the machine was quiet, and in a sentence what says so.

    `table` has the rows of the control, if the run has one.
    """
    warned = {each.flag.letter: each for each in warnings(table)}
    busy, slow, doubt = warned.get(disturbed(1).letter), warned.get(SLOW.letter), control_warning(table)
    noise = control_noise(table)
    doubts = [f"{_sentence(doubt)}."] if doubt else []
    if busy:
        doubts.append(f"Other processes disturbed a quarter of the samples or more in {busy.where}.")
    if slow:
        doubts.append(f"In {slow.where} it ran at less than 75 % of the highest speed that was ever measured on it.")
    if doubts:
        doubts += [f"{_sentence(noise)}."] if noise and not doubt else []
        return False, f"The machine was {'not quiet' if doubt or busy else 'slow'}. {' '.join(doubts)}"
    rows = [row for at in points_of(table) for row in measured(at.rows)]
    if not rows:
        return True, ""
    share = units.percent(max(row["flagged_share"] or 0.0 for row in rows))
    checked = f"; {noise}" if noise else ""
    return True, f"The machine was quiet: at most {share} of the samples of a case were disturbed{checked}."


def warnings(table: pd.DataFrame) -> list[Warned]:
    """Return each flag that rows have, with their number, the most frequent first."""
    rows = [row for at in points_of(table) for row in measured(at.rows)]
    raised = [flag for row in rows for flag in flags(row)]
    number = Counter(flag.letter for flag in raised)
    shortest = {flag.letter: flag for flag in sorted(raised, key=lambda flag: -len(flag.meaning))}
    return [Warned(shortest[letter], count, len(rows)) for letter, count in number.most_common()]


def speedup_cell(row: Row | None, baseline: str | None) -> str:
    """Return a row's speed-up with its interval, `baseline` for the baseline, empty if there is none."""
    if row is not None and row["implementation"] == baseline:
        return "baseline"
    if row is None or row["speedup"] is None:
        return ""
    ends = (row[name] for name in ("speedup", "speedup_low", "speedup_high"))
    return intervals.ratio(Interval(*(math.nan if end is None else float(end) for end in ends)))


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}"


def _use(name: str, points: Sequence[At]) -> str:
    """Return what the choice can cost, and where another one is faster: by much, or by so little that it is counted."""
    rows = [(at, at.row(name)) for at in points]
    beaten = [(at, row) for at, row in rows if row and _is_exception(row)]
    others = [(at, row) for at, row in rows if row and not _is_exception(row)]
    absent = [at for at, row in rows if row is None]
    if not others:
        return f"Use {name}, though another one is faster at each point: {_except(beaten, absent)}."
    highs = [row["slowdown_high"] for _, row in others]
    where = f"all {len(points)} points" if len(others) == len(points) else f"{len(others)} of {len(points)} points"
    where = f"the only point that compares anything, {points[0].label}," if len(points) == 1 else where
    most = math.inf if None in highs else max(highs)
    bound = f"it takes at most {_times(most)} as long as the fastest one" if most < MOST else "its cost has no bound"
    near = sum((row["slowdown_low"] or 1.0) > 1 for _, row in others)
    shown = f", though at {near} of them another one is faster" if near else ""
    but = _except(beaten, absent)
    return f"Use {name}: at {where} {bound}{shown}{f'; but {but}' if but else ''}."


def _is_exception(row: Row) -> bool:
    """Return whether a row is shown to be so much slower that the sentence on all points names its point."""
    return row["standing"] == SLOWER and bool((row["slowdown_low"] or 1.0) > GOOD)


def _except(beaten: Sequence[tuple[At, Row]], absent: Sequence[At]) -> str:
    """Return where another implementation is shown to be faster, by how much, and where the choice has no time."""
    worst = sorted(beaten, key=lambda pair: -float(pair[1]["slowdown_low"]))
    parts = [
        f"at {at.label} {at.choice.name if at.choice.standing == FASTEST else 'another'} is "
        f"{_times(row['slowdown_low'], up=False)} to {_times(row['slowdown_high'])} as fast"
        for at, row in worst[:MOST_POINTS]
    ]
    if rest := worst[MOST_POINTS:]:
        least, most = min(row["slowdown_low"] for _, row in rest), max(row["slowdown_high"] for _, row in rest)
        number = counted([len(rest)], "other point", "other points")
        parts.append(f"at {number} others are {_times(least, up=False)} to {_times(most)} as fast")
    if absent:
        named = len(absent) <= MOST_POINTS
        parts.append(f"it has no time at {', '.join(at.label for at in absent) if named else f'{len(absent)} points'}")
    return "; ".join(parts)


def _times(ratio: float, *, up: bool = True) -> str:
    """Return a bound as a ratio with two decimals, rounded away from what it bounds: `1.03x`."""
    if ratio >= MOST:
        return f"over {MOST:,.0f}x"
    scaled = round(100 * float(ratio), 6)
    return f"{(math.ceil(scaled) if up else math.floor(scaled)) / 100:.2f}x"


def _gain(name: str, points: Sequence[At], baseline: str | None) -> str:
    """Return how fast an implementation is where that is least, and where it is most; empty for the baseline."""
    pairs = [(at, row) for at in points if (row := at.row(name)) and row["speedup"]]
    if baseline is None or name == baseline or not pairs:
        return ""
    ends = [choose(pairs, key=lambda pair: float(pair[1]["speedup"])) for choose in (min, max)]
    values = [(speedup_cell(row, baseline), at) for at, row in ends]
    return f"is {_from_to(values, is_one=len(points) == 1)} as fast as {baseline}"


def _sureness(points: Sequence[At]) -> str:
    """Return at how many points the one to use is as good as the fastest, and what would bring the others there."""
    left = [at for at in points if at.choice.standing not in (FASTEST, ALONE) and not at.choice.high <= GOOD]
    bounded = [at for at in left if not math.isnan(at.choice.high)]
    if left and not bounded:
        return ""
    where = f"{len(points) - len(left)} of {len(points)}" if left else f"all {len(points)}"
    sentence = f"With the one that is named at each point you are within {more(GOOD)} of the fastest at {where}"
    if not left:
        return f"{sentence}."
    others = "the others" if len(bounded) == len(left) else f"{len(bounded)} of the others"
    rest = f"{sentence}, and within {more(max(at.choice.high for at in bounded))} at {others}"
    needed = [at.choice.further_s for at in bounded]
    if None in needed:
        return f"{rest}."
    total = duration(sum(each or 0.0 for each in needed))
    return f"{rest}; about {total} more of measuring would bring all below {more(GOOD)}."


def _few_processes(points: Sequence[At]) -> str:
    """Return what to think of bounds from one process, which are none, and from two: of the rows that are named."""
    numbers = {row["processes"] for at in points if (row := at.first)}
    if 1 in numbers:
        return "One process gives no bound."
    if 2 in numbers:
        return "Two processes alone give no scatter: bounds lean on what all points have in common."
    return ""


def control_noise(table: pd.DataFrame) -> str:
    """Return by how much a second baseline differed from the first, empty if the run has no control."""
    of = control(table)
    if of.point is None:
        return ""
    ratio = max(of.speedup.value, 1 / of.speedup.value)
    words = differences(of.point, varying(case.point for case in cases(table)))
    return f"a second {of.baseline} differed from the first by up to {more(ratio)}{f' ({words})' if words else ''}"


def control_warning(table: pd.DataFrame) -> str:
    """Return that identical code differs by more than the errors say, empty if it doesn't.

    `table` is the whole table of results, with the rows of the control.
    """
    of = control(table)
    if not of.is_notable:
        return ""
    return (
        f"identical code differs here by more than rounds and processes explain: {control_noise(table)}; so all "
        f"intervals and bounds are {of.excess:.1f} times as wide"
    )
