"""Doubts about the numbers of a run: other processes, differences between identical code, flags."""

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
"""Flags that have their own sentence or none, because tables show their letters."""


def sentences(whole: pd.DataFrame) -> list[str]:
    """Return the doubts about a table's numbers, and what helps; the table has the control's rows."""
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
    """Return the number of rows with each flag."""
    return Counter(flag for row in rows for flag in flags(row))


def control_warning(table: pd.DataFrame) -> str:
    """Return a warning if identical code differs by more than the errors say; else empty.

    `table` is the whole table of results, with the control's rows.
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
