"""The implementation to use, in words: at a point, and over a whole run."""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from bench.analyse.flags import is_biased, launch_bound
from bench.analyse.rows import Row, grouped, measured, plain, point_of, speedup_of, unmeasured
from bench.analyse.standing import (
    ALONE,
    DECIDED,
    FASTEST,
    NAMED,
    NOTHING,
    UNDECIDED,
    Choice,
    by_rank,
    choice,
    is_to_use,
)
from bench.plan.case import Point
from bench.plan.device import GRAPH, HOST, QUESTIONS
from bench.plan.sweep import Sweep
from bench.show import blocks, intervals
from bench.show.text import LONGEST_NAME, capital, counted, listed, more, names, share_of, times
from bench.stats.best import GOOD
from bench.store import units
from bench.store.table import without_control


@dataclass(frozen=True)
class At:
    """The results at one point: its name among the others, and its rows by rank, failures last.

    `planned` is the number of implementations in the run's plan, 0 if unknown. A planned point without measurements
    has no rows.
    """

    point: Point
    label: str
    rows: tuple[Row, ...]
    planned: int = 0

    @cached_property
    def choice(self) -> Choice:
        """The implementation to use."""
        return choice(self.rows)

    def row(self, name: str) -> Row | None:
        """Return the row of an implementation, None if it was not measured."""
        return next((row for row in measured(self.rows) if row["implementation"] == name), None)

    @property
    def first(self) -> Row | None:
        """The row of the implementation to use, None if nothing was measured."""
        return self.row(self.choice.name)

    @property
    def failed(self) -> int:
        """The number of rows without a time."""
        return len(unmeasured(self.rows))

    @property
    def cases(self) -> int:
        """The number of cases, including those without a row but not the control."""
        return max(self.planned, len(self.rows))

    @property
    def waits(self) -> int:
        """The number of cases that the run has not reached."""
        return self.cases - len(self.rows)


def points_of(table: pd.DataFrame, planned: Sweep | None = None, longest: float = LONGEST_NAME) -> list[At]:
    """Return the results at each point of a table in order, then the other points of its plan.

    Labels longer than `longest` characters are shortened while they still differ.
    """
    rows_at = grouped(plain(without_control(table)), point_of)
    others = [point for point in planned.points if point not in rows_at] if planned else []
    number = len(planned.implementations) if planned else 0
    labels = names([*rows_at, *others], longest)
    return [
        At(point, labels[point], (*by_rank(measured(rows)), *unmeasured(rows)), number)
        for point, rows in [*rows_at.items(), *((point, []) for point in others)]
    ]


def use(of: Choice) -> str:
    """Return what to use: `sdpa`, or `not decided: sdpa or eager`."""
    if of.standing == UNDECIDED:
        rivals = of.rivals if len(of.rivals) == 1 else [counted(len(of.rivals), "other")]
        return f"{UNDECIDED}: {' or '.join([of.name, *rivals])}"
    if of.standing == ALONE:
        return f"{of.name} ({ALONE})"
    return of.name or of.standing


def within(of: Choice) -> str:
    """Return the bound of a choice: `0.4%` for one within 0.4% of the fastest, `fastest`, or empty."""
    if of.standing == FASTEST:
        return FASTEST
    if of.standing in (NAMED, UNDECIDED):
        return "no bound" if math.isnan(of.bound) else more(of.bound)
    return ""


def words(of: Choice) -> str:
    """Return choice and bound: `sdpa, within 0.4%`, `sdpa, fastest` or `not decided: sdpa or eager (within 14%)`."""
    cost = within(of)
    if of.standing == UNDECIDED:
        return f"{use(of)} ({cost if math.isnan(of.bound) else f'within {cost}'})"
    if of.standing == NAMED:
        return f"{use(of)}, within {cost}"
    return f"{use(of)}, {cost}" if cost else use(of)


def tone(of: Choice) -> str:
    """Return GOOD for a bound of at most `stats.best.GOOD`, BAD if nothing was measured, else PLAIN."""
    if of.standing == NOTHING:
        return blocks.BAD
    return blocks.GOOD if of.is_decided and of.bound <= GOOD else blocks.PLAIN


def certainty(of: Choice) -> float:
    """Return the certainty of a choice: 1 for the fastest, 0 for an undecided one."""
    return 1 - math.log(of.bound) / math.log(DECIDED) if of.is_decided else 0.0


def speedup_cell(row: Row | None, baseline: str | None) -> str:
    """Return a row's ratio to the baseline with its interval, `baseline` for the baseline, or why there is none."""
    if row is None:
        return ""
    if row["implementation"] == baseline:
        return "baseline"
    if is_biased(row):
        return "disturbed"
    return intervals.ratio(speedup_of(row)) if row["speedup"] is not None else ""


def answers(points: Sequence[At], baseline: str | None) -> list[list[str]]:
    """Return a separate answer for the points of each kind of device and each timing."""
    groups = grouped(points, lambda at: (at.point.kind, at.point.timing))
    kinds, told = dict.fromkeys(kind for kind, _ in groups), []
    for (kind, timing), members in groups.items():
        timings = [other for of, other in groups if of is kind]
        of = [f"on the {kind.title}"] * (len(kinds) > 1) + [QUESTIONS[timing]] * (len(timings) > 1)
        first, *rest = _answer(members, baseline)
        told.append([f"{capital(', '.join(of))}: {first}" if of else first, *rest, *_waiting(members, timings)])
    return told


def answer(points: Sequence[At], baseline: str | None) -> list[str]:
    """Return sentences that say what to use, where another implementation is faster, and what is undecided."""
    return [sentence for of_kind in answers(points, baseline) for sentence in of_kind]


def _answer(points: Sequence[At], baseline: str | None) -> list[str]:
    """Return the answer for points of one kind of device and one timing."""
    tried = [at for at in points if at.rows]
    chosen = [at for at in tried if at.choice.name]
    if not chosen:
        return [f"Nothing was measured: none of {counted(sum(at.cases for at in points), 'case')} is ok."]
    compared = [at for at in chosen if at.choice.standing != ALONE]
    if not compared:
        named = dict.fromkeys(at.choice.name for at in chosen)
        return [f"Nothing was compared: only {listed([*named])} was measured."]
    name = everywhere(compared)
    undecided = _undecided([at for at in compared if not at.choice.is_decided], points)
    if not name:
        return undecided
    rows = [(at, row) for at in compared if (row := at.row(name))]
    beaten = [(at, row) for at, row in rows if _is_beaten(row)]
    good = [(at, row) for at, row in rows if (row["slowdown_high"] or math.inf) <= DECIDED and (at, row) not in beaten]
    first = f"Use {name}: {_bound([row for _, row in good], points)}{_gain(good, baseline)}."
    return [first, *_except(name, beaten), *undecided]


def _is_beaten(row: Row) -> bool:
    """Return whether another implementation is faster, and the row isn't within GOOD."""
    return (row["slowdown_low"] or 1.0) > 1 and not (row["slowdown_high"] or math.inf) <= GOOD


def everywhere(points: Sequence[At]) -> str:
    """Return the implementation to use at all points; empty if none is decided at any point.

    Among those that are decided at some point and measured at the most points, it is the one with the smallest product
    of upper bounds; an unknown bound is replaced by the slowdown itself. Among those with all bounds at most GOOD it is
    the one that is named at the most points.
    """
    decided = dict.fromkeys(at.choice.name for at in points if at.choice.is_decided)

    def demerit(name: str) -> tuple[bool, int, float, int, float]:
        rows = [row for at in points if (row := at.row(name))]
        bounds = [row["slowdown_high"] or row["slowdown"] or 1.0 for row in rows]
        whole = sum(map(math.log, bounds))
        named = sum(at.choice.name == name for at in points)
        return not is_to_use(name), -len(rows), whole if max(bounds) > GOOD else 0.0, -named, whole

    return min(decided, key=demerit, default="")


def _bound(rows: Sequence[Row], points: Sequence[At]) -> str:
    """Return the bound of a choice over its rows: `within 1.6% of the fastest at all 3 points`."""
    most = max(row["slowdown_high"] for row in rows)
    cost = "the fastest" if most == 1 else f"within {more(most)} of the fastest"
    return f"{cost} at {share_of(len(rows), len(points))} points" if points[1:] else cost


def _gain(good: Sequence[tuple[At, Row]], baseline: str | None) -> str:
    """Return the speed of a choice relative to the baseline; empty for the baseline, or without a reliable ratio."""
    rows = [row for _, row in good if row["speedup_low"] is not None and not is_biased(row)]
    if not rows or rows[0]["implementation"] == baseline:
        return ""
    if len(good) == 1:
        return f", {speedup_cell(rows[0], baseline)} as fast as {baseline}"
    ratios = sorted(row["speedup"] for row in rows)
    ends = dict.fromkeys([units.ratio(ratios[0]).removesuffix("x"), units.ratio(ratios[-1]).removesuffix("x")])
    return f", {' to '.join(ends)}x as fast as {baseline}"


def _except(name: str, beaten: Sequence[tuple[At, Row]]) -> Iterator[str]:
    """Yield a line with the point where another implementation gains most, and the number of other such points."""
    if beaten:
        at, row = max(beaten, key=lambda pair: float(pair[1]["slowdown_low"]))
        other = at.choice.name if at.choice.is_decided else "another"
        rest = f"; {counted(len(beaten) - 1, 'other point')}" if beaten[1:] else ""
        yield f"Except {at.label}: {other} ({name} takes {_between(row)} as long){rest}."


def _between(row: Row) -> str:
    low, high = times(row["slowdown_low"], up=False), row["slowdown_high"]
    return f"{low} or more" if high is None else f"{low.removesuffix('x')} to {times(high)}"


def _undecided(left: Sequence[At], points: Sequence[At]) -> list[str]:
    """Return at how many points the choice is undecided; for a single one, the alternatives."""
    if not left:
        return []
    if len(left) == 1:
        where = f" at {left[0].label}" if points[1:] else ""
        return [f"{capital(words(left[0].choice))}{where}."]
    where = "any point" if len(left) == len(points) else f"{share_of(len(left), len(points))} points"
    return [f"{capital(UNDECIDED)} at {where}."]


def _waiting(points: Sequence[At], timings: Collection[str]) -> Iterator[str]:
    """Yield a line on the points where callers wait for the host, not for the GPU, with the implementation to use."""
    bound = [row for at in points if (row := at.first) and launch_bound(row)]
    where = f"At {share_of(len(bound), len(points))} points" if points[1:] else "Here"
    yield from bound_by_host(bound, where, timings)


def bound_by_host(rows: Sequence[Row], where: str, timings: Collection[str]) -> Iterator[str]:
    """Yield that callers of these launch-bound rows of one timing wait for the host; nothing for host timing.

    `timings` are the measured ones; the sentence names the others that measure what callers wait for.
    """
    if not rows or rows[0]["timing"] == HOST:
        return
    needs = [float(row["host_s"]) for row in rows]
    ends = " to ".join(dict.fromkeys([units.seconds(min(needs)), units.seconds(max(needs))]))
    is_graph = rows[0]["timing"] == GRAPH
    others = [each for each in ([HOST] if is_graph else [HOST, GRAPH]) if each not in timings]
    measures = f"; --timing {','.join(others)} measures that" if others else ""
    what = "launch the graph" if is_graph else "queue a call"
    yield f"{where} the host needs {ends} to {what}, as long as the GPU or longer, so callers wait for it{measures}."
