"""A race that measures a program that follows a table of choices, beside the cores of the table."""

import dataclasses
from pathlib import Path
from typing import Any

from bench.analyse import table_check
from bench.analyse.standing import Answer
from bench.engine.run import Run
from bench.plan.case import Point
from bench.plan.errors import NotComparable
from bench.plan.sweep import Sweep
from bench.store.environment import Environment, differences


class TableCheck(Run):
    """A race over the shapes of a check, until the distance of the table's follower from the fastest core is known.

    The last implementation of the sweep is the follower. `measured` is where the table was measured: entering it on
    another machine, or with other software, raises NotComparable.
    """

    def __init__(self, sweep: Sweep, folder: Path, measured: Environment) -> None:
        self._measured = measured
        super().__init__(sweep, folder)

    @property
    def follower(self) -> str:
        """The implementation that follows the table."""
        return self.sweep.implementations[-1]

    def answer(self, point: Point, bound: float) -> Answer:
        """Return what is known of the follower's distance from the fastest core."""
        known = super().answer(point, bound)
        if not known.named:
            return known
        return table_check.answer(self.summary.contrasts(point), self.follower, bound, known.replicates)

    def _observed(self, state: dict[str, Any]) -> Environment:
        here = super()._observed(state)
        if unlike := differences(dataclasses.replace(self._measured, runtimes={}), here):
            raise NotComparable(
                f"a table is checked where its run was measured, and this is another machine: {'; '.join(unlike)}"
            )
        return here
