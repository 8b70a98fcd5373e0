"""The command that measures one row again: its point, and its implementation beside the baseline of its run."""

import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from bench.plan import layers
from bench.plan.case import AS_IS, COLUMNS, CONTROL, Case, Point
from bench.plan.columns import flag, written
from bench.plan.grid import OF_THE_MACHINE
from bench.plan.invocation import suite
from bench.plan.names import is_module
from bench.plan.sides import Given, asked_for
from bench.plan.sweep import SWITCHES, Effort, Sweep

STATED = ("device", *OF_THE_MACHINE)
"""The columns that a command states in any case: another machine has other values of them."""

MOST_COMMANDS = 8
"""The most rows for which a table prints the commands."""


@dataclass(frozen=True)
class Again:
    """What the rows of a run share that is part of the command: the baseline, the control, and the effort.

    The baseline and the effort are None if they aren't known. `sides` are those of a duel whose rows are its sides.
    """

    baseline: str | None = None
    control: bool = True
    effort: Effort | None = None
    sides: tuple[Given, ...] = ()

    def command(self, case: Case) -> str:
        """Return the command that measures a case alone, as it is typed in a shell; of a duel, both of its sides."""
        if not self.sides:
            return f"{suite()} run {shlex.join(self.words(case))}"
        before, after = self.sides
        columns = [*_of_point(case.point, without=["layer"] if "layer" in before else [])]
        return f"{suite()} duel {shlex.join([*asked_for(before, after), *columns])}"

    def words(self, case: Case) -> list[str]:
        """Return the options of the command."""
        return [*_of_point(case.point), *self._of_run(case)]

    def _of_run(self, case: Case) -> Iterator[str]:
        usual = AS_IS if is_module(case.point.layer) else Sweep.baseline
        baseline = self.baseline or usual
        yield from ("--impl", baseline if case.implementation == CONTROL else case.implementation)
        if baseline != usual:
            yield from ("--baseline", baseline)
        if not self.control:
            yield "--no-control"
        for name in SWITCHES if self.effort else ():
            is_on, usually = getattr(self.effort, name), name == "race"  # a request is a race unless it says no
            if is_on != usually:
                yield flag(name if is_on else f"no_{name}")
        if self.effort and self.effort.allow_error:
            yield from ("--allow-error", written(self.effort.allow_error))


def _of_point(point: Point, without: Collection[str] = ()) -> Iterator[str]:
    """Yield the options for the columns that a request must give: no others lead to this point."""
    usual = {name: column.usual_of(point) for name, column in COLUMNS.items()} | layers.following(point)
    for name, value in vars(point).items():
        if name not in without and value is not None and (name in STATED or value != usual[name]):
            yield from _words(flag(name), written(value))


def _words(option: str, text: str) -> list[str]:
    """Return an option with its value, in one word if the value could be taken for an option."""
    return [f"{option}={text}"] if text.startswith("-") else [option, text]
