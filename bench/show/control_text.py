"""The control of a run as text: by how much identical code differed."""

import pandas as pd

from bench.analyse.conclusions import control
from bench.show.choice_text import more
from bench.show.point_text import differences, varying
from bench.store.table import cases


def noise(table: pd.DataFrame) -> str:
    """Return by how much a second baseline differed from the first, empty if the run has no control."""
    of = control(table)
    if of.point is None:
        return ""
    ratio = max(of.speedup.value, 1 / of.speedup.value)
    words = differences(of.point, varying(case.point for case in cases(table)))
    return f"a second {of.baseline} differed from the first by up to {more(ratio)}{f' ({words})' if words else ''}"


def warning(table: pd.DataFrame) -> str:
    """Return that identical code differs by more than the errors say, empty if it doesn't.

    `table` is the whole table of results, with the rows of the control.
    """
    of = control(table)
    if not of.is_notable:
        return ""
    return (
        f"identical code differs here by more than rounds and processes explain: {noise(table)}; so all intervals and "
        f"bounds are {of.excess:.1f} times as wide"
    )
