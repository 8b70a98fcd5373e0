"""Who is the fastest among the rows of a point."""

from typing import Any

import pytest

from bench.analyse.fastest import (
    ALONE,
    NOTHING,
    WITHOUT_INTERVALS,
    Outcome,
    against_their_numbers,
    fastest_first,
    outcome,
)
from bench.analyse.ranking import NOT_DECIDED, SLOWER, TIE, WINNER
from bench.analyse.scaling.series import Row


def row(name: str, rank: int | None = None, standing: str | None = None, **columns: Any) -> Row:
    """Return the columns that are read here, of a row with this rank."""
    numbers = dict.fromkeys(("speedup", "relative", "relative_low", "relative_high", "further_processes"))
    return {"implementation": name, "rank": rank, "standing": standing, "latency_s": 1.0, **numbers, **columns}


def behind(relative: float) -> dict[str, float]:
    """Return the columns of a row that is so far behind."""
    return {"relative": relative, "relative_low": relative - 0.01, "relative_high": relative + 0.01}


def names(rows: list[Row]) -> list[str]:
    """Return the implementations in their order."""
    return [each["implementation"] for each in rows]


def test_the_rank_orders_whatever_the_other_numbers_say() -> None:
    """No shorter latency or larger speed-up goes before a rank, and either makes a row known that seems wrong."""
    rows = [
        row("a", 2, latency_s=1.0, speedup=1.5),
        row("b", 1, latency_s=2.0, speedup=1.4),
        row("c", 3, latency_s=3.0),
    ]
    assert names(fastest_first(rows)) == ["b", "a", "c"]
    assert against_their_numbers(rows) == {"b"}
    for latency_s, speedup, seeming in ((1.1, 1.0, {"a"}), (1.0, 0.9, {"a"}), (1.0, 1.0, set())):
        pair = [row("a", 1, latency_s=latency_s, speedup=speedup), row("b", 2, speedup=1.0)]
        assert against_their_numbers(pair) == seeming


def test_a_winner_is_named_with_its_relative_time_the_next() -> None:
    """The relative is that over the second, whoever stands where in the table."""
    rows = [row("c", 3, SLOWER, **behind(2.0)), row("a", 1, WINNER, **behind(1.0)), row("b", 2, SLOWER, **behind(1.1))]
    found = outcome(rows)
    assert (found.says, found.names, found.runner_up) == (WINNER, ("a",), "b")
    assert found.relative is not None
    assert (found.relative.value, found.relative.low, found.relative.high) == pytest.approx((1.1, 1.09, 1.11))


@pytest.mark.parametrize("says", [TIE, NOT_DECIDED])
def test_all_that_are_not_slower_are_named(says: str) -> None:
    """Those that tie, and those of which each may be the fastest, in the order of their ranks."""
    rows = [
        row("a", 1, says, **behind(1.0), further_processes=4),
        row("b", 2, SLOWER, **behind(1.03)),
        row("c", 3, says, **behind(1.04)),
    ]
    found = outcome(rows)
    assert (found.says, found.names, found.further_processes) == (says, ("a", "c"), 4)


def test_without_intervals_there_is_only_a_fastest() -> None:
    """One process shows no more, and says how far it was ahead."""
    found = outcome([row("a", 1, NOT_DECIDED, relative=1.0), row("b", 2, NOT_DECIDED, relative=1.5)])
    assert (found.says, found.names) == (WITHOUT_INTERVALS, ("a",))
    assert found.relative is not None
    assert not found.relative.is_known


def test_without_a_rival_there_is_nothing_to_compare() -> None:
    """One row, or none."""
    assert outcome([row("a", 1)]) == Outcome(ALONE, ("a",))
    assert outcome([]) == Outcome(NOTHING)
