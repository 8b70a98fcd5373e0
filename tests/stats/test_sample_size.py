"""How many further processes would decide a row: so many do, and one fewer doesn't."""

import math
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.analyse.comparison.compare import compare
from bench.plan.case import Case
from bench.stats.limits import INCONCLUSIVE
from bench.stats.sample_size import MOST_PROCESSES
from tests.analyse.tables import Row, cases, row, table
from tests.examples import case

SDPA = case("sdpa")

few_examples = settings(max_examples=10)


@pytest.mark.parametrize(
    ("change", "verdict"),
    [(0.95, "slower"), (1.05, "faster"), (1.0, "equivalent"), (0.995, "equivalent"), (1.005, "equivalent")],
)
def test_a_row_is_decided_by_its_change(change: float, verdict: str) -> None:
    """What changed by more than the margin would be shown to, and what hardly did would be shown equivalent."""
    found = judged(measured(SDPA, change, sd=0.03, processes=3))
    assert found["verdict"] == INCONCLUSIVE
    assert found["further_verdict"] == verdict
    assert found["further_processes"] > 0


@pytest.mark.slow
@few_examples
@given(st.floats(0.9, 1.1), st.floats(0.003, 0.05), st.integers(2, 10), st.integers(2, 10), st.integers(0, 5))
def test_so_many_decide_and_one_fewer_does_not(change: float, sd: float, before: int, after: int, noisy: int) -> None:
    """Compared with that many more processes the row has its verdict, beside rows that stay open, and not before."""
    others = cases(noisy)

    def found(further: int) -> "pd.Series[Any]":
        base = [ratio(SDPA, 1.0, sd, before + further), *(ratio(one, 1.0, 0.5, 3) for one in others)]
        new = [ratio(SDPA, change, sd, after + further), *(ratio(one, 1.0, 0.5, 3) for one in others)]
        return compare(table(*base), table(*new)).iloc[0]

    now = found(0)
    if now["verdict"] != INCONCLUSIVE:
        assert pd.isna(now["further_processes"])
        return
    if pd.isna(now["further_processes"]):
        assert found(MOST_PROCESSES)["verdict"] == INCONCLUSIVE
        return
    assert found(now["further_processes"])["verdict"] == now["further_verdict"]
    for fewer in {1, now["further_processes"] // 2, now["further_processes"] - 1} - {now["further_processes"]}:
        assert found(fewer)["verdict"] == INCONCLUSIVE


def test_more_rows_need_more_processes() -> None:
    """By Holm's correction a row among many open ones needs stronger evidence than alone."""
    open_rows = cases(50)

    def needed(*beside: Case) -> int:
        sides = [[ratio(SDPA, change, 0.03, 4), *(ratio(one, 1.0, 0.5, 3) for one in beside)] for change in (1.0, 0.95)]
        return int(compare(*(table(*rows) for rows in sides))["further_processes"][0])

    assert needed() < needed(*open_rows)


def test_what_a_change_is_worth_depends_on_the_margin() -> None:
    """A change of 5 % is worth showing at a margin of 1 %, and within one of 10 %."""
    noisy = measured(SDPA, 0.95, sd=0.05, processes=3)
    assert judged(noisy, margin=0.01)["further_verdict"] == "slower"
    assert judged(noisy, margin=0.1)["further_verdict"] == "equivalent"


def test_where_no_reasonable_number_would_there_is_none() -> None:
    """A change at the edge of the margin amid a scatter of 50 % stays open whatever anybody measures."""
    found = judged(measured(SDPA, 1.0151, sd=0.5, processes=3))
    assert found["verdict"] == INCONCLUSIVE
    assert pd.isna(found["further_processes"])
    assert pd.isna(found["further_verdict"])
    assert not pd.isna(found["change_low"])


@pytest.mark.parametrize("logs", [[0.1], [0.1, 0.1, 0.1]])
def test_without_scatter_there_is_nothing_to_plan_by(logs: list[float]) -> None:
    """One process, or processes that agree to the last bit, say nothing about the next."""
    found = judged((row(SDPA, [0.0] * len(logs)), row(SDPA, logs)))
    assert found["verdict"] == INCONCLUSIVE
    assert pd.isna(found["further_processes"])
    assert pd.isna(found["change_low"])


def ratio(of: Case, speedup: float, sd: float, processes: int) -> Row:
    """Return a row of so many processes whose ratios scatter by exactly `sd`."""
    return {**row(of), "processes": processes, "speedup": speedup, "log_ratio_sd": sd}


def measured(of: Case, change: float, sd: float, processes: int) -> tuple[Row, Row]:
    """Return both sides of a row that changed by a factor."""
    return ratio(of, 1.5, sd, processes), ratio(of, 1.5 * change, sd, processes)


def judged(sides: tuple[Row, Row], **limits: Any) -> "pd.Series[Any]":
    """Return the only row of a comparison."""
    base, new = (table(one) for one in sides)
    found = compare(base, new, **limits).iloc[0]
    assert math.isfinite(found["change"])
    return found
