"""Rows that move together point at what they all refer to."""

import pandas as pd
import pytest

from bench.analyse.compare import compare
from bench.analyse.together import Movement, moved_together
from tests.analyse.tables import Row, baseline, failed, row, table
from tests.examples import case

TOKENS = (50, 197, 577)


@pytest.mark.parametrize(("change", "verdict"), [(0.9, "slower"), (1.1, "faster")])
def test_most_rows_in_one_direction_are_noticed(change: float, verdict: str) -> None:
    """Three implementations that all lost a tenth at all points, against eager: eager may be what changed."""
    found = moved_together(compared({"sdpa": change, "mha": change * 0.99, "flex": change * 1.03}))
    assert found == Movement(verdict, 9, 9, 3, "sdpa")


def test_the_anchor_moved_like_the_others() -> None:
    """An implementation that changed by itself as well would judge wrongly: sdpa is the one in the middle."""
    found = moved_together(compared({"mha": 0.5, "sdpa": 0.9, "flex": 0.93}))
    assert found
    assert found.anchor == "sdpa"


def test_the_anchor_has_the_most_rows() -> None:
    """One that failed at a point judges nothing there."""
    changes = {"sdpa": 0.9, "mha": 0.88, "flex": 0.93}
    found = moved_together(compared(changes, failing=("sdpa", 50)))
    assert found
    assert found.anchor != "sdpa"
    assert found.judged == 8


@pytest.mark.parametrize(
    "changes",
    [
        {"sdpa": 1.0, "mha": 1.0, "flex": 1.0},
        {"sdpa": 0.9, "mha": 1.0, "flex": 1.0},
        {"sdpa": 0.9, "mha": 1.1},
        {"sdpa": 0.9, "mha": 0.9, "flex": 1.1, "online": 1.0},
    ],
)
def test_rows_that_went_their_own_ways_point_nowhere(changes: dict[str, float]) -> None:
    """Where no more than half of the rows moved in one direction, they changed themselves."""
    assert moved_together(compared(changes)) is None


def test_a_single_implementation_points_at_itself() -> None:
    """Of sdpa and eager no third tells which changed, and sdpa is what was asked about."""
    assert moved_together(compared({"sdpa": 0.9})) is None


def test_nothing_judged_is_no_movement() -> None:
    """A comparison of one process a side judges no row."""
    rows = [row(case(name), [0.0]) for name in ("sdpa", "mha")]
    assert moved_together(compare(table(*rows), table(*rows))) is None


def compared(changes: dict[str, float], failing: tuple[str, int] | None = None) -> pd.DataFrame:
    """Return a comparison in which each implementation changed by a factor at all points."""
    points = [(name, tokens) for name in changes for tokens in TOKENS]
    base = [at(name, tokens, 1.5) for name, tokens in points]
    new = [
        failed(case(name, num_tokens=tokens)) if (name, tokens) == failing else at(name, tokens, 1.5 * changes[name])
        for name, tokens in points
    ]
    eager = [baseline(num_tokens=tokens) for tokens in TOKENS]
    return compare(table(*eager, *base), table(*eager, *new))


def at(name: str, tokens: int, speedup: float) -> Row:
    """Return a row of three processes that agree about a speed-up within a tenth of a percent."""
    return {**row(case(name, num_tokens=tokens), (-0.001, 0.0, 0.001)), "speedup": speedup}
