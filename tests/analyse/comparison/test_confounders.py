"""What may have moved the ratios besides the code."""

import pandas as pd
import pytest

from bench.analyse.comparison.compare import compare
from bench.analyse.comparison.confounders import CommonShift, common_shift, speed_change, unmatched
from tests.analyse.tables import at, baseline, cases, failed, of_layers, row, table
from tests.examples import case

TOKENS = (50, 197, 577)


@pytest.mark.parametrize(("change", "verdict"), [(0.9, "slower"), (1.1, "faster")])
def test_most_rows_in_one_direction_are_noticed(change: float, verdict: str) -> None:
    """Three implementations that all lost a tenth at all points, against eager: eager may be what changed."""
    found = common_shift(compared({"sdpa": change, "mha": change * 0.99, "flex": change * 1.03}))
    assert found == CommonShift(verdict, 9, 9, 3, "sdpa")


def test_the_other_baseline_moved_like_the_others() -> None:
    """An implementation that changed by itself as well would mislead: sdpa is the one in the middle."""
    found = common_shift(compared({"mha": 0.5, "sdpa": 0.9, "flex": 0.93}))
    assert found
    assert found.baseline == "sdpa"


def test_the_other_baseline_has_the_most_rows() -> None:
    """One that failed at a point judges nothing there."""
    changes = {"sdpa": 0.9, "mha": 0.88, "flex": 0.93}
    found = common_shift(compared(changes, failing=("sdpa", 50)))
    assert found
    assert found.baseline != "sdpa"
    assert found.judged == 8


@pytest.mark.parametrize(
    "changes",
    [
        {"sdpa": 1.0, "mha": 1.0, "flex": 1.0},
        {"sdpa": 0.9, "mha": 1.0, "flex": 1.0},
        {"sdpa": 0.9, "mha": 1.1},
        {"sdpa": 0.9, "mha": 0.9, "flex": 1.1, "online": 1.0},
        {"sdpa": 0.9},
    ],
)
def test_rows_that_went_their_own_ways_point_nowhere(changes: dict[str, float]) -> None:
    """If no more than half of the rows moved in one direction they changed themselves; so does a single one."""
    assert common_shift(compared(changes)) is None
    unjudged = [row(case(name), [0.0]) for name in changes]
    assert common_shift(compare(table(*unjudged), table(*unjudged))) is None


@pytest.mark.parametrize(
    ("factor", "own", "shift"),
    [
        (1.5, {"mha": 2.0}, 1.5),
        (0.6, {"mha": 2.0}, 0.6),
        (1.1, {"mha": 2.0}, None),
        (0.95, {"mha": 2.0}, None),
        (1.0, {"eager": 2.0}, None),
    ],
)
def test_where_all_took_longer_the_machine_may_have_changed(
    factor: float, own: dict[str, float], shift: float | None
) -> None:
    """What most rows did counts, as far as it is more than everyday drift; one row is no other speed."""
    change = speed_change(timed({"eager": 1.0, "sdpa": 0.5, "mha": 0.8}, factor, own))
    assert change == (shift if shift is None else pytest.approx(shift))


def test_without_times_on_both_sides_no_speed_is_known() -> None:
    """A case that failed has none."""
    base = table(baseline(), row(case("sdpa"), [0.1, 0.2], latency_s=None))
    assert speed_change(compare(base, table(failed(case("eager")), failed(case("sdpa"))))) is None


def timed(times: dict[str, float], factor: float, own: dict[str, float]) -> pd.DataFrame:
    """Return a comparison in which all raw times changed by a factor, and some by another of their own."""
    base, new = (
        table(*(row(case(name), [0.0, 0.001], latency_s=time_s * by.get(name, 1.0)) for name, time_s in times.items()))
        for by in ({}, {name: factor * own.get(name, 1.0) for name in times})
    )
    return compare(base, new)


def compared(changes: dict[str, float], failing: tuple[str, int] | None = None) -> pd.DataFrame:
    """Return a comparison in which each implementation changed by a factor at all points."""
    points = [(name, tokens) for name in changes for tokens in TOKENS]
    base = [at(case(name, num_tokens=tokens), 1.5) for name, tokens in points]
    new = [
        failed(case(name, num_tokens=tokens))
        if (name, tokens) == failing
        else at(case(name, num_tokens=tokens), 1.5 * changes[name])
        for name, tokens in points
    ]
    eager = [baseline(num_tokens=tokens) for tokens in TOKENS]
    return compare(table(*eager, *base), table(*eager, *new))


def test_the_same_implementations_are_no_strangers() -> None:
    """Neither the order of rows, nor columns that are empty for some layers, nor points of one side alone matter."""
    rows = [row(of, [0.1, 0.1]) for of in of_layers()]
    elsewhere = row(case("online", num_tokens=577), [0.3, 0.3])
    assert unmatched(table(*rows), table(*reversed(rows), elsewhere)) == ([], [])


def test_who_stands_on_one_side_alone_is_named_once() -> None:
    """Two points, one implementation more on each side."""
    shared = [row(of, [0.1, 0.2]) for of in cases(2)]
    base = table(*shared, *(row(of, [0.3, 0.3]) for of in cases(2, "online")))
    new = table(*shared, *(row(of, [0.3, 0.3]) for of in cases(2, "manual")))
    assert unmatched(base, new) == (["online"], ["manual"])


def test_who_failed_was_no_company() -> None:
    """Only what took its turns in the rounds was beside the others."""
    beside = [baseline(), row(case("sdpa"), [0.1, 0.2])]
    base = table(*beside, row(case("online"), [0.3, 0.4]))
    new = table(*beside, failed(case("online")), failed(case("mha")))
    assert unmatched(base, new) == (["online"], [])
