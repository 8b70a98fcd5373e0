"""The control of a run as text, if it makes the run's differences unproven."""

import pandas as pd

from bench.analyse.control import control
from bench.plan.case import Point
from bench.show import intervals
from bench.show.point_text import differences, varying
from bench.store.table import cases

DECIMALS = 4
"""Of the ratio, if its interval supports them: a deviation may be small."""


def unproven(table: pd.DataFrame) -> str:
    """Return that a run measures differences where there are none, and by how much; empty if its control is right.

    `table` is the whole table of results, with the rows of the control.
    """
    of = control(table)
    if not of.is_unproven:
        return ""
    clearest = of.deviations[0]
    at = _place(clearest.point, [case.point for case in cases(table)])
    number = len(of.deviations)
    more = f" ({number} of {of.points} points are off)" if number > 1 else ""
    ratio = intervals.ratio(clearest.speedup, DECIMALS, least=2)
    return (
        f"unproven: the control, a second {of.baseline}, was measured {ratio} "
        f"as fast as {of.baseline}{at}{more}: in this run, differences of this size are no result"
    )


def _place(point: Point, points: list[Point]) -> str:
    words = differences(point, varying(points))
    return f" at {words}" if words else ""
