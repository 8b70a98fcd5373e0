"""What to use, in sentences: at a point, the same wherever a point is shown, and over a whole run."""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from bench.analyse.flags import launch_bound
from bench.analyse.rows import grouped
from bench.analyse.standing import (
    ALONE,
    FASTEST,
    NAMED,
    NOT_TOLD,
    NOTHING,
    UNDECIDED,
    Choice,
    choice,
    is_to_use,
)
from bench.plan.case import Point
from bench.plan.device import GRAPH, HOST, QUESTIONS
from bench.plan.errors import NOT_FINITE
from bench.plan.sweep import Sweep
from bench.plan.verdicts import SLOWER
from bench.show import blocks
from bench.show.columns import latency_text, ratio_text
from bench.show.rows import Row, by_point, measured, unmeasured
from bench.show.text import MOST, any_of, capital, counted, listed, more, names, share_of, times
from bench.stats.best import GOOD
from bench.store import units
from bench.store.table import without_control
from impls.catalogue import name_of

MOST_NAMED = 3
"""At most this number of points is named in a sentence; more are counted."""

UNSURE = 1.15
"""A choice that can cost as much as this is hardly better than none."""

FASTEST_MEANS = "fastest: all others are shown to be slower, the next one by so much"
"""What it means that one is the fastest."""

OF_FEW_PROCESSES = {
    1: ("One process gives no bound.", "in one process, which gives no bound"),
    2: (
        "Two processes alone give no scatter: bounds lean on what all points have in common.",
        "in two processes, which alone give no scatter: its bound leans on what all points have in common",
    ),
}
"""What so few processes tell, if all that are named were measured in so many, and if some were."""

OF_RATIOS = "All that is said of ratios is of 99 %"
"""The probability with which bounds and intervals of ratios hold."""


@dataclass(frozen=True)
class At:
    """What a run says of one point: its rows, its name among the others, and the implementation to use.

    `planned` is the number of implementations that the run's plan has, 0 if that isn't known. A point of the plan that
    the run has not come to has no rows.
    """

    point: Point
    label: str
    rows: tuple[Row, ...]
    choice: Choice
    planned: int = 0

    def row(self, name: str) -> Row | None:
        """Return the row of an implementation, None if it was not measured."""
        return next((row for row in measured(self.rows) if row["implementation"] == name), None)

    @property
    def first(self) -> Row | None:
        """The row of the one to use, None if nothing was measured."""
        return self.row(self.choice.name)

    @property
    def failed(self) -> int:
        """The number of rows without a time."""
        return len(unmeasured(self.rows))

    @property
    def cases(self) -> int:
        """The number of cases, those without a row too; the control is none."""
        return max(self.planned, len(self.rows))

    @property
    def waits(self) -> int:
        """The number of cases that the run has not come to."""
        return self.cases - len(self.rows)


def choice_of(rows: Sequence[Row]) -> Choice:
    """Return the implementation to use, by the rows of one point, of which some may be left out."""
    return choice(measured(rows))


def points_of(table: pd.DataFrame, planned: Sweep | None = None) -> list[At]:
    """Return what a table of results says of each of its points, in their order, then the other points of its plan."""
    rows_at = by_point(without_control(table))
    others = [point for point in planned.points if point not in rows_at] if planned else []
    number = len(planned.implementations) if planned else 0
    labels = names([*rows_at, *others])
    return [
        At(point, labels[point], tuple(rows), choice_of(rows), number)
        for point, rows in [*rows_at.items(), *((point, []) for point in others)]
    ]


def use(of: Choice) -> str:
    """Return what to use: `sdpa`, or `not decided: sdpa or eager`."""
    if of.standing == UNDECIDED:
        return f"{UNDECIDED}: {any_of([of.name, *of.rivals])}"
    if of.standing == ALONE:
        return f"{of.name} ({ALONE})"
    return of.name or of.standing


def within(of: Choice) -> str:
    """Return the most that it costs: `0.4%` for one within 0.4% of the fastest, `fastest`, or nothing."""
    if of.standing == FASTEST:
        return FASTEST
    if of.standing in (NAMED, UNDECIDED):
        return "no bound" if math.isnan(of.bound) else more(of.bound)
    return ""


def words(of: Choice) -> str:
    """Return both in one phrase: `sdpa, within 0.4%`, `sdpa, fastest` or `not decided: sdpa or eager (within 14%)`."""
    cost = within(of)
    if of.standing == UNDECIDED:
        return f"{use(of)} ({cost if math.isnan(of.bound) else f'within {cost}'})"
    if of.standing == NAMED:
        return f"{use(of)}, within {cost}"
    return f"{use(of)}, {cost}" if cost else use(of)


def tone(of: Choice) -> str:
    """Return a good tone if a choice costs next to nothing, a bad one if nothing was measured."""
    if of.standing == NOTHING:
        return blocks.BAD
    return blocks.GOOD if of.standing == FASTEST or of.bound <= GOOD else blocks.HEAD


def certainty(of: Choice) -> float:
    """Return how sure a choice is, from 0 to 1: that of a fastest one is 1, that of one without a bound 0."""
    if of.standing == FASTEST:
        return 1.0
    if of.standing not in (NAMED, UNDECIDED) or math.isnan(of.bound):
        return 0.0
    return max(0.0, 1 - math.log(of.bound) / math.log(UNSURE))


def answers(points: Sequence[At], baseline: str | None) -> list[list[str]]:
    """Return the answer for the points of each kind of device and each timing, because none is chosen for several."""
    groups = grouped(points, lambda at: (at.point.kind, at.point.timing))
    kinds = dict.fromkeys(kind for kind, _ in groups)
    told = []
    for (kind, timing), members in groups.items():
        labels = names([at.point for at in members]) if len(groups) > 1 else {}
        first, *rest = _answer([replace(at, label=labels.get(at.point, at.label)) for at in members], baseline)
        has_others = any(each is kind and other != timing for each, other in groups)
        of = [f"on the {kind.title}"] * (len(kinds) > 1) + [QUESTIONS[timing]] * has_others
        first = f"{capital(', '.join(of))}, {first[0].lower()}{first[1:]}" if of else first
        measured = [other for each, other in groups if each is kind]
        told.append([first, *rest, *_waiting(members, measured)])
    return told


def _waiting(points: Sequence[At], timings: Collection[str]) -> Iterator[str]:
    """Yield at which points nobody sees the GPU's time of the one to use, because the host needs longer."""
    bound = [at for at in points if (row := at.first) and launch_bound(row)]
    where = f"At {_where(len(bound), points)}" if points[1:] else "Here"
    yield from bound_by_host([row for at in bound if (row := at.first)], where, timings)


def bound_by_host(rows: Sequence[Row], where: str, timings: Collection[str]) -> Iterator[str]:
    """Yield that who calls these launch-bound rows of one timing waits for the host; nothing if it is the host's.

    `timings` are those that were measured: the sentence names the others that tell what a user waits for.
    """
    if not rows or rows[0]["timing"] == HOST:
        return
    needs = [float(row["host_s"]) for row in rows]
    ends = " to ".join(dict.fromkeys([units.seconds(min(needs)), units.seconds(max(needs))]))
    is_graph = rows[0]["timing"] == GRAPH
    others = [each for each in ([HOST] if is_graph else [HOST, GRAPH]) if each not in timings]
    measures = f"; --timing {','.join(others)} measures {'both' if others[1:] else 'that'}" if others else ""
    yield (
        f"{where} the host needs {ends} to {'launch the graph' if is_graph else 'queue a call'}, which is no less than "
        f"what the GPU needs: who calls it waits for the host"
        f"{'' if is_graph else ', unless it is captured as a graph'}{measures}."
    )


def answer(points: Sequence[At], baseline: str | None) -> list[str]:
    """Return in a few sentences what to use, what that can cost, and how it compares with the baseline."""
    return [sentence for of_kind in answers(points, baseline) for sentence in of_kind]


def _answer(points: Sequence[At], baseline: str | None) -> list[str]:
    """Return the answer for points of one kind of device."""
    tried = [at for at in points if at.rows]
    chosen = [at for at in tried if at.choice.standing != NOTHING]
    if not chosen:
        reasons = [str(row["detail"]) for at in tried for row in at.rows]
        cause = [f"{capital(reasons[0])}."] if reasons and all(NOT_FINITE in each for each in reasons) else []
        return [*cause, f"Nothing was measured: none of {counted(sum(at.cases for at in points), 'case')} is ok."]
    named = dict.fromkeys(at.choice.name for at in chosen if at.choice.name)
    if len(tried) == 1:
        (at,) = chosen
        first = f"at {at.label}, {_where(1, points)}: {words(at.choice)}" if points[1:] else words(at.choice)
        return [f"{capital(first)}.", *_times_of([*named], chosen, baseline), *_of_own(chosen, baseline)]
    compared = [at for at in chosen if at.choice.standing != ALONE]
    if not compared:
        where = f"at {_where(len(chosen), points)}"
        first = f"Nothing can be compared: only one implementation was measured {where} ({listed([*named])})."
        return [first, *_times_of([*named], chosen, baseline)]
    name = everywhere(compared)
    known = [at for at in compared if at.row(name)]
    if 2 * len(known) <= len(tried):
        most = _where(len(known), points)
        first = f"No implementation is named for all points: none is compared with others at more than {most}."
        return [first, *filter(None, [_sureness(compared, points), _alone(chosen)]), *_of_own(chosen, baseline)]
    gain = _gain(name, compared, baseline)
    sentences = _use(name, compared, points), gain and f"{name} {gain}.", _sureness(compared, points)
    return [*filter(None, [*sentences, _few_processes(compared), _alone(chosen)]), *_of_own(chosen, baseline)]


def _where(some: int, points: Sequence[At]) -> str:
    """Return how many of the planned points so many are: `all 3 points`, or `the 3 of 90 points that were measured`."""
    tried = sum(bool(at.rows) for at in points)
    if tried == len(points):
        return f"{share_of(some, tried)} points"
    of_plan = f"the {tried:,} of {len(points):,} points that {'was' if tried == 1 else 'were'} measured"
    return of_plan if some == tried else f"{some:,} of {of_plan}"


def _times_of(names: Sequence[str], points: Sequence[At], baseline: str | None) -> Iterator[str]:
    """Yield for each of these implementations what a call takes, and its ratio to the baseline if it isn't that."""
    for name in names:
        if takes := _from_to(name, points, "latency_s", latency_text):
            ratio = _gain(name, points, baseline)
            yield f"{name} takes {takes} a call{f'; it {ratio}' if ratio else ''}."


def _from_to(name: str, points: Sequence[At], column: str, text: Callable[[Row], str]) -> str:
    """Return the text of an implementation's row where a column is least, and where it is most, each with its point.

    An only point needs no name. Empty if no row has a value.
    """
    pairs = [(at, row) for at in points if (row := at.row(name)) and row[column]]
    if not pairs:
        return ""
    ends = [choose(pairs, key=lambda pair: float(pair[1][column])) for choose in (min, max)]
    low, high = (text(row) if len(points) == 1 else f"{text(row)} ({at.label})" for at, row in ends)
    return low if low == high else f"from {low} to {high}"


def _of_own(points: Sequence[At], baseline: str | None) -> Iterator[str]:
    """Yield the time and the ratio of the implementation of a user's own that isn't named alone.

    Of several the tables have it, each with the same numbers in a row.
    """
    names = dict.fromkeys(str(row["implementation"]) for at in points for row in measured(at.rows))
    said = {points[0].choice.name} if len(points) == 1 else set()
    own = [name for name in names if name_of(name).is_own]
    yield from _times_of([name for name in own if name not in said], points, baseline) if len(own) == 1 else ()


def _alone(points: Sequence[At]) -> str:
    """Return at which points nothing was compared, empty if there are none."""
    alone = [at for at in points if at.choice.standing == ALONE]
    where = _labels(alone, "other points")
    return f"Nothing is compared at {where}, where one implementation was measured." if alone else ""


def _labels(points: Sequence[At], many: str) -> str:
    """Return the names of a few points, or how many there are."""
    return ", ".join(at.label for at in points) if len(points) <= MOST_NAMED else f"{len(points)} {many}"


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
        is_apart = name_of(name).entry.for_profiles or not is_to_use(name)
        return is_apart, -len(rows), whole if max(bounds) > GOOD else 0.0, -named, whole

    return min(names, key=demerit)


def speedup_cell(row: Row | None, baseline: str | None) -> str:
    """Return a row's speed-up with its interval, `baseline` for the baseline, empty if there is none."""
    return ratio_text(row, baseline) if row else ""


def _use(name: str, compared: Sequence[At], points: Sequence[At]) -> str:
    """Return what the choice can cost, and where another one is faster: by much, or by so little that it is counted.

    Of the `points` of the plan, these are `compared`.
    """
    rows = [(at, at.row(name)) for at in compared]
    beaten = [(at, row) for at, row in rows if row and _is_exception(row)]
    others = [(at, row) for at, row in rows if row and not _is_exception(row)]
    absent = [at for at in points if at.rows and not at.row(name)]
    if not others:
        return f"Use {name}, though at {_where(len(beaten), points)} another one is faster: {_except(beaten, absent)}."
    highs = [row["slowdown_high"] for _, row in others]
    where = _where(len(others), points)
    most = math.inf if None in highs else max(highs)
    bound = f"it takes at most {times(most)} as long as the fastest one" if most < MOST else "its cost has no bound"
    near = sum((row["slowdown_low"] or 1.0) > 1 for _, row in others)
    shown = f", though at {near} of them another one is faster" if near else ""
    but = _except(beaten, absent)
    rest = f"{bound}{shown}{f'; but {but}' if but else ''}."
    return f"Use {name}: at {where} {rest}" if all(at.rows for at in points) else f"At {where}, use {name}: {rest}"


def _is_exception(row: Row) -> bool:
    """Return whether a row is shown to be so much slower that the sentence on all points names its point."""
    return row["standing"] == SLOWER and bool((row["slowdown_low"] or 1.0) > GOOD)


def _except(beaten: Sequence[tuple[At, Row]], absent: Sequence[At]) -> str:
    """Return where another implementation is shown to be faster, by how much, and where the choice has no time."""
    worst = sorted(beaten, key=lambda pair: -float(pair[1]["slowdown_low"]))
    parts = [
        f"at {at.label} {at.choice.name if at.choice.standing == FASTEST else 'another'} is "
        f"{times(row['slowdown_low'], up=False)} to {times(row['slowdown_high'])} as fast"
        for at, row in worst[:MOST_NAMED]
    ]
    if rest := worst[MOST_NAMED:]:
        least, most = min(row["slowdown_low"] for _, row in rest), max(row["slowdown_high"] for _, row in rest)
        number = counted(len(rest), "other point")
        parts.append(f"at {number} others are {times(least, up=False)} to {times(most)} as fast")
    if absent:
        parts.append(f"it has no time at {_labels(absent, 'points')}")
    return "; ".join(parts)


def _gain(name: str, points: Sequence[At], baseline: str | None) -> str:
    """Return how fast an implementation is where that is least, and where it is most; empty for the baseline."""
    if baseline is None or name == baseline:
        return ""
    fast = _from_to(name, points, "speedup", lambda row: speedup_cell(row, baseline))
    return f"is {fast} as fast as {baseline}" if fast else ""


def _sureness(compared: Sequence[At], points: Sequence[At]) -> str:
    """Return at how many points the one to use is as good as the fastest, and what would bring the others there."""
    left = [at for at in compared if at.choice.standing not in (FASTEST, ALONE) and not at.choice.bound <= GOOD]
    bounded = [at for at in left if not math.isnan(at.choice.bound)]
    if left and not bounded:
        return ""
    where = _where(len(compared) - len(left), points)
    sentence = f"With the one that is named at each point you are within {more(GOOD)} of the fastest at {where}"
    if not left:
        return f"{sentence}."
    others = "the others" if len(bounded) == len(left) else f"{len(bounded)} of the others"
    rest = f"{sentence}, and within {more(max(at.choice.bound for at in bounded))} at {others}"
    needed = [at.choice.further_s for at in bounded]
    if None in needed:
        return f"{rest}."
    return f"{rest}; about {_until_good(sum(each or 0.0 for each in needed), 'all')}."


def _few_processes(points: Sequence[At]) -> str:
    """Return what to think of bounds from one process, which are none, and from two: of the rows that are named."""
    numbers = [row["processes"] for at in points if (row := at.first)]
    return " ".join(_of_few(number, numbers) for number in OF_FEW_PROCESSES if number in numbers)


def _of_few(number: int, numbers: Sequence[int]) -> str:
    """Return what so few processes tell, and at how many points of those that have a name."""
    of_all, of_some = OF_FEW_PROCESSES[number]
    count = numbers.count(number)
    if count == len(numbers):
        return of_all
    return f"At {count} of {len(numbers)} points the one that is named was measured {of_some}."
