"""The points of a run in the order of their importance."""

import numpy as np
import pandas as pd

from bench.plan.case import POINT_COLUMNS

UNTRIED = ("ok", "unsupported", "skipped")
"""Statuses at which nothing went wrong."""


def most_important(table: pd.DataFrame, count: int) -> pd.DataFrame:
    """Return the rows of the most important points, these first; the rows of a point keep their order.

    First come points at which a case went wrong, then those at which the fastest is the most times as fast as the
    baseline, then those without a speed-up.
    """
    number = point_numbers(table)
    wrong = (~table["status"].isin(UNTRIED)).to_numpy()
    gain = table["speedup"].where(table["rank"] == 1).to_numpy(dtype=np.float64, na_value=-np.inf)
    facts = pd.DataFrame({"point": number, "wrong": wrong, "gain": gain}).groupby("point", sort=False).max()
    chosen = facts.sort_values(["wrong", "gain"], ascending=False, kind="stable").index[:count]
    place = np.full(len(facts), len(facts))
    place[chosen.to_numpy()] = np.arange(len(chosen))
    order = np.argsort(place[number], kind="stable")
    return table.iloc[order[: int(np.sum(place[number] < len(chosen)))]]


def point_count(table: pd.DataFrame) -> int:
    """Return the number of points in a table."""
    return int(point_numbers(table).max() + 1) if len(table) else 0


def point_numbers(table: pd.DataFrame) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Return for each row the number of its point, in the order in which the points come."""
    numbers = np.zeros(len(table), dtype=np.int64)
    for name in POINT_COLUMNS:
        codes, values = pd.factorize(table[name])
        numbers = pd.factorize(numbers * (len(values) + 1) + codes + 1)[0].astype(np.int64)
    return numbers
