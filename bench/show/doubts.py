"""What makes the numbers of a run doubtful: other processes, identical code that differs, flags."""

from collections import Counter
from collections.abc import Sequence

import pandas as pd

from bench.analyse.control import control
from bench.analyse.flags import DISTURBED, LAUNCH_BOUND, ONE_PROCESS, Flag, flags
from bench.analyse.rows import Row, measured, plain
from bench.plan.case import CONTROL
from bench.show.text import counted, differences, more, varying
from bench.store.table import cases, without_control

UNSAID = (DISTURBED, LAUNCH_BOUND, ONE_PROCESS)
"""Flags that have a sentence of their own, or none: the tables have their letters."""


def sentences(whole: pd.DataFrame) -> list[str]:
    """Return what weakens the numbers of a table, which has the rows of the control, and what helps."""
    rows = measured(plain(without_control(whole)))
    number = _number(rows)
    told = []
    if number[DISTURBED]:
        told.append(
            f"Other processes disturbed {number[DISTURBED]} of {counted(len(rows), 'case')}. Close them, or trust only "
            "differences above 5%."
        )
    if warning := control_warning(whole):
        told.append(f"{warning}.")
    if lost := int(((whole["implementation"] == CONTROL) & (whole["status"] != "ok")).sum()):
        told.append(f"The control, which runs the baseline again, failed at {counted(lost, 'point')}: see results.csv.")
    if rows and all(row["slowdown_high"] is None and row["processes"] == 1 for row in rows):
        told.append("One process gives no interval. Use --processes 2 or more.")
    others = [flag for flag in number if flag not in UNSAID]
    told += [
        f"{counted(number[flag], 'case')}: {flag.meaning}{f': {flag.advice}' * bool(flag.advice)}." for flag in others
    ]
    return told


def _number(rows: Sequence[Row]) -> Counter[Flag]:
    """Return the number of rows that have each flag."""
    return Counter(flag for row in rows for flag in flags(row))


def control_warning(table: pd.DataFrame) -> str:
    """Return that identical code differs by more than the errors say, empty if it doesn't.

    `table` is the whole table of results, with the rows of the control.
    """
    of = control(table)
    if not of.is_notable or of.point is None:
        return ""
    ratio = max(of.speedup.value, 1 / of.speedup.value)
    where = differences(of.point, varying(case.point for case in cases(table)))
    return (
        f"Two runs of {of.baseline} differ by up to {more(ratio)}{f' ({where})' if where else ''}, more than their "
        f"errors explain, so all intervals are {of.widened:.1f} times as wide"
    )
