"""What a run's page shows: its machines, the points that fit into a page, and what their rows have in common."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from bench.analyse.series import AXES, Axis, groups
from bench.plan.errors import WrongRequest
from bench.plan.grid import machine_columns, without_columns
from bench.plan.sweep import Effort
from bench.show import answer
from bench.show.answer import At
from bench.show.columns import complete
from bench.show.figures.line_data import Quantity, quantities
from bench.show.rows import Row, is_measured, measured
from bench.show.text import differences, order, varying
from bench.store.record import Record
from bench.store.saved_run import SavedRun, runs_of

MOST_CASES = 1_500
"""The most cases in a page; of more it has the first points, and says so."""


@dataclass(frozen=True)
class Shown:
    """A point of the page: the number of its machine, what the run says of it, and its name with that of the machine.

    A run of one machine names none.
    """

    machine: int
    at: At
    label: str


@dataclass(frozen=True)
class View:
    """What a page shows of the runs of some machines, by their names: of each all points, and those that the page has.

    Points of one series may differ in the columns `ignored`, which distinguish machines.
    `refused` has a sentence for each machine that is left out.
    """

    machines: Mapping[str, SavedRun]
    points: Mapping[str, Sequence[At]]
    shown: Sequence[Shown]
    ignored: frozenset[str]
    refused: Sequence[str]

    @property
    def first(self) -> SavedRun:
        """The run of the first machine."""
        return next(iter(self.machines.values()))

    @property
    def baseline(self) -> str | None:
        """The baseline of all runs."""
        return self.first.baseline

    @cached_property
    def effort(self) -> Effort:
        """The effort of the run, the usual one if it isn't known."""
        try:
            return self.first.effort or Effort()
        except WrongRequest:  # a plan that this suite can't carry out
            return Effort()

    @property
    def several(self) -> bool:
        """Whether there are several machines."""
        return len(self.machines) > 1

    def of(self, machine: str, text: str) -> str:
        """Return a sentence, with the machine of which it is true if the page has several."""
        return f"{machine}: {text}" if self.several else text

    @cached_property
    def names(self) -> list[str]:
        """The implementations."""
        return list(dict.fromkeys(str(row["implementation"]) for each in self.shown for row in each.at.rows))

    @cached_property
    def rows(self) -> list[Row]:
        """The rows with the numbers of their points and machines, of each point the one to use first, failures last."""
        rows = []
        for number, each in enumerate(self.shown):
            complete(each.at.rows, self.baseline)
            ranked = sorted(each.at.rows, key=lambda row: (not is_measured(row), _rank(row)))
            rows += [{**row, "number": number, "machine": each.machine} for row in ranked]
        return rows

    @cached_property
    def series(self) -> list[tuple[Axis, list[Row]]]:
        """The rows of each series along an axis, of all machines."""
        return [(axis, rows) for axis in AXES for rows in groups(self.rows, axis, self.ignored) if measured(rows)]

    @property
    def axes(self) -> list[Axis]:
        """The axes of the series."""
        return list(dict.fromkeys(axis for axis, _ in self.series))

    @cached_property
    def quantities(self) -> list[Quantity]:
        """The quantities that some row has: ratios to the baseline first, then in the order of the table."""
        rows = measured(self.rows)
        drawn = [each for each in quantities(self.baseline) if any(row[each.column] for row in rows)]
        return sorted(drawn, key=lambda each: (not each.axis.relative, each.place))

    @cached_property
    def records(self) -> list[list[Record]]:
        """The records of each machine's points; those of points that the page leaves out are not read."""
        return [list(self._loaded(number, run)) for number, run in enumerate(self.machines.values())]

    def _loaded(self, machine: int, run: SavedRun) -> Iterator[Record]:
        points = {each.at.point for each in self.shown if each.machine == machine}
        return run.loaded(entry for entry in run.entries if entry.case.point in points)


def view_of(saved: SavedRun) -> View:
    """Return what the page of a run shows, a merged one with each of its machines.

    Raises WrongRequest if it has no rows.
    """
    machines, refused = _machines(saved)
    points = {name: answer.points_of(run.whole) for name, run in machines.items()}
    ignored: frozenset[str] = frozenset()
    if len(points) > 1:  # no name of a point has the columns that distinguish machines
        ignored = machine_columns([at.point for at in of] for of in points.values())
        different = varying({without_columns(at.point, ignored) for of in points.values() for at in of})
        points = {
            name: [replace(at, label=differences(at.point, different) or "the only point") for at in of]
            for name, of in points.items()
        }
    return View(machines, points, _that_fit(points, ignored), ignored, refused)


def _machines(saved: SavedRun) -> tuple[dict[str, SavedRun], list[str]]:
    """Return the runs of the machines by the names that the page gives them, and a sentence for each without rows.

    A machine has the name that its user gave it, or that of its device. Raises WrongRequest if none has rows.
    """
    runs, refused = {}, []
    for folder, run in runs_of(saved).items():
        try:
            devices = run.table["device_name"].dropna().unique()
        except WrongRequest as error:
            refused.append(error)
            continue
        given = run.environment.context.get("machine_name") if run.environment else None
        runs[folder] = str(given or " and ".join(map(str, devices))), run
    if not runs:
        raise refused[0]
    names = [name for name, _ in runs.values()]
    named = {f"{name} ({folder})" if names.count(name) > 1 else name: run for folder, (name, run) in runs.items()}
    return named, [f"A machine is left out: {error}." for error in refused]


def _that_fit(by_machine: Mapping[str, Sequence[At]], ignored: frozenset[str]) -> list[Shown]:
    """Return the first points whose cases fit into a page, one at least; of several machines, point by point."""
    several = len(by_machine) > 1
    every = [
        Shown(number, at, f"{at.label} ({name})" if several else at.label)
        for number, (name, points) in enumerate(by_machine.items())
        for at in points
    ]
    if several:
        every.sort(key=lambda each: (order(without_columns(each.at.point, ignored)), each.machine))
    kept: list[Shown] = []
    cases = 0
    for each in every:
        cases += len(each.at.rows)
        if kept and cases > MOST_CASES:
            break
        kept.append(each)
    return kept


def _rank(row: Row) -> float:
    return math.inf if row["rank"] is None else row["rank"]
