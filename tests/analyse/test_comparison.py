"""Two tables compared: no false alarms, planted changes are shown, and neither order nor direction matters."""

import dataclasses
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench.analyse.comparison import compare, compared, excluded, no_longer_to_use
from bench.analyse.rows import plain
from bench.plan.case import CASE_COLUMNS, Case
from bench.plan.errors import NotComparable, WrongRequest
from bench.plan.verdicts import VERDICTS
from bench.stats.estimates import Interval
from tests.make.comparisons import NOISY, every_verdict, tables_of_every_verdict
from tests.make.records import case
from tests.make.rows import Row, baseline, cases, drawn, failed, of_layers, row, table

SDPA, SELF = case("sdpa"), case("sdpa", layer="self", num_heads=1, key_channels=6)
CLOSE = [-0.001, 0.0, 0.001]
"""Three processes that agree within a tenth of a percent."""

OPPOSITE = {"faster": "slower", "newly failing": "fixed", "missing": "new"}
OPPOSITE |= {after: before for before, after in OPPOSITE.items()}


def at(speedup: float, of: Case = SDPA, scatter: float = 1.0) -> Row:
    """Return a row of three processes about a speed-up; they scatter by `scatter` tenths of a percent."""
    return row(of, [math.log(speedup) + scatter * value for value in CLOSE])


def judged(base: Row | None, new: Row | None, **limits: Any) -> "pd.Series[Any]":
    """Return the comparison of one case, a None standing for a side that lacks it."""
    other = row(case("other"), [0.0])  # shared, so that the tables are comparable, and of one process, so not judged
    comparison = compare(*(table(other, *([one] if one else [])) for one in (base, new)), **limits)
    return comparison[comparison["implementation"] == "sdpa"].iloc[0]


def by_case(comparison: pd.DataFrame) -> dict[Any, dict[str, Any]]:
    """Return the rows of a comparison under their cases."""
    return {tuple(values[name] for name in CASE_COLUMNS): values for values in plain(comparison)}


def alarms(comparison: pd.DataFrame) -> int:
    """Return the number of rows that are called faster or slower."""
    return int(comparison["verdict"].isin(["faster", "slower"]).sum())


# one row


@pytest.mark.parametrize(
    ("change", "scatter", "limits", "verdict"),
    [
        (0.95, 1.0, {}, "slower"),
        (1.05, 1.0, {}, "faster"),
        (1.0005, 1.0, {}, "equivalent"),
        (0.95, 1.0, {"margin": 0.1}, "equivalent"),
        (1.0, 50, {}, "open"),
    ],
)
def test_a_row_is_judged_by_its_change(change: float, scatter: float, limits: dict[str, float], verdict: str) -> None:
    """A speed-up of 2 that becomes 2.1 is faster, however slow the machine is; a wide margin makes it equivalent."""
    result = judged(at(2.0, scatter=scatter), {**at(2.0 * change, scatter=scatter), "latency_s": 0.04}, **limits)
    assert (result["verdict"], result["change"]) == (verdict, pytest.approx(change))
    assert (result["base_speedup"], result["new_speedup"]) == pytest.approx((2.0, 2.0 * change))
    assert (result["base_latency_s"], result["new_latency_s"]) == (0.02, 0.04)


@pytest.mark.parametrize("margin", [-0.01, math.nan, math.inf])
def test_an_impossible_margin_is_refused(margin: float) -> None:
    """The refusal names its value."""
    with pytest.raises(WrongRequest, match=f"margin = {margin} must"):
        judged(at(1.0), at(1.0), margin=margin)


def test_the_interval_of_a_change_is_welchs() -> None:
    """Logarithms -h, 0, h on both sides: sd h, standard error h √(2/3), 4 degrees of freedom, t = 4.604.

    With all the scatter on one side, 2 degrees of freedom are left: t = 9.925. A file that has no degrees of freedom
    has the same interval on each side.
    """
    both = judged(at(1.0, scatter=10), at(1.5, scatter=10))  # h = 0.01
    half = 4.60409 * 0.01 * math.sqrt(2 / 3)
    ends = 1.5 * math.exp(-half), 1.5 * math.exp(half)
    assert (both["change_low"], both["change_high"]) == pytest.approx(ends, rel=1e-6)
    one = judged(at(1.0, scatter=10), at(1.0, scatter=1e-6))
    assert math.log(one["change_high"]) == pytest.approx(9.92484 * 0.01 / math.sqrt(3), rel=1e-4)
    side = {**at(1.0, scatter=10), "log_ratio_freedom": None}
    file = judged(side, {**at(1.0, scatter=1e-6), "log_ratio_freedom": None})
    assert file["change_high"] == pytest.approx(side["speedup_high"], rel=1e-4)


@pytest.mark.parametrize(
    ("base", "new"),
    [([0.0], [0.7] * 3), (CLOSE, [0.7]), ([0.0], [0.7]), ([0.5] * 3, [1.2] * 3), ([-0.201, -0.2, -0.199], [0.5] * 3)],
)
def test_without_an_interval_on_both_sides_a_change_is_open(base: list[float], new: list[float]) -> None:
    """A single process has none, however large the change; processes that agree to the last bit come from no clock.

    Where the baseline failed there is no speed-up.
    """
    result = judged(row(SDPA, base), row(SDPA, new))
    assert (result["verdict"], result["change"]) == ("open", pytest.approx(math.exp(0.7)))
    assert result[["change_low", "change_high"]].isna().all()
    assert judged(row(SDPA, base), row(SDPA))["verdict"] == "open"


@pytest.mark.parametrize(
    ("base", "new", "verdict"),
    [
        (failed(SDPA), failed(SDPA, "crashed"), "not measured"),
        (row(SDPA, CLOSE), failed(SDPA), "newly failing"),
        (failed(SDPA), row(SDPA, CLOSE), "fixed"),
        (row(SDPA, CLOSE), None, "missing"),
        (failed(SDPA), None, "missing"),
        (None, row(SDPA, CLOSE), "new"),
        (None, failed(SDPA), "new"),
    ],
)
def test_status_alone_can_be_the_verdict(base: Row | None, new: Row | None, verdict: str) -> None:
    """What failed, came or went is said as such, and never judged by numbers."""
    result = judged(base, new)
    assert (result["verdict"], pd.isna(result["change_low"])) == (verdict, True)


def test_a_baseline_is_not_judged() -> None:
    """Its ratio is 1 in every run, with one process or five."""
    for processes in (1, 5):
        run = table(baseline(processes), at(1.0))
        assert compare(run, run)["verdict"].tolist() == ["equivalent", "baseline"]
    first, second = cases(2)  # exactly 1 by chance at one point: the ratios don't refer to sdpa
    run = table(baseline(1), row(first, [0.0]), row(second, [0.3]))
    assert compare(run, run)["verdict"].tolist() == ["open", "open", "baseline"]


def test_neither_order_nor_direction_matters() -> None:
    """If both sides are swapped, faster becomes slower, fixed newly failing, new missing, and the change inverts."""
    base, new = tables_of_every_verdict()
    there, back = by_case(compare(base, new)), by_case(compare(new, base))
    assert by_case(compare(base[::-1], new[::-1])) == there
    assert there.keys() == back.keys()
    assert {values["verdict"] for values in there.values()} == {*VERDICTS}
    for key, values in there.items():
        assert back[key]["verdict"] == OPPOSITE.get(values["verdict"], values["verdict"])
        for one, other in (("change", "change"), ("change_low", "change_high"), ("change_high", "change_low")):
            inverse = None if values[other] is None else pytest.approx(1 / values[other])
            assert back[key][one] == inverse


# simulations


@pytest.mark.slow
def test_unchanged_tables_raise_no_alarm() -> None:
    """Of 50 tables of 20 unchanged rows over 10 processes, quiet rows and noisy ones, at most 3 hold any alarm.

    The level of 1 % allows 0.5 of them without any margin; 4 or more would come about in 1 of 570 tries. Intervals of
    99 % for each row separately would raise alarms in 9.
    """
    rng, scatter = np.random.default_rng(2024), np.geomspace(0.005, 0.2, 20).tolist()
    tables = ([drawn(rng, cases(20), sd=scatter) for _ in range(2)] for _ in range(50))
    assert sum(alarms(compare(*sides, margin=0.0)) > 0 for sides in tables) <= 3


@pytest.mark.parametrize(("change", "verdict"), [(-0.05, "slower"), (0.05, "faster")])
def test_planted_change_is_shown_among_unchanged_rows(change: float, verdict: str) -> None:
    """5 % in every third of 60 rows, scattering by 0.5 % over 10 processes: all are shown, and no others."""
    rng = np.random.default_rng(3)
    planted = cases(60)[::3]
    base, unchanged = drawn(rng, cases(60)), drawn(rng, [one for one in cases(60) if one not in planted])
    comparison = compare(base, pd.concat([drawn(rng, planted, middle=0.3 + math.log1p(change)), unchanged]))
    changed = comparison.loc[comparison["verdict"] == verdict, "num_tokens"].tolist()
    assert sorted(changed) == [one.point.num_tokens for one in planted]
    assert alarms(comparison) == len(planted)


# matching


def test_rows_are_matched_by_case_and_not_by_place() -> None:
    """Cases that differ in one column are matched each with its own; layers lack optional columns."""
    variants: list[dict[str, Any]] = [{}, {"qkv_bias": True}, {"threads": 4}, {"allocator": "system"}, {"batch": 1}]
    of = [*(case("sdpa", **changes) for changes in variants), *of_layers()[1:]]
    rows = [row(one, [level, level + 0.001]) for level, one in enumerate(of)]
    comparison = compare(table(*rows), table(*reversed(rows)))
    assert comparison["change"].tolist() == pytest.approx([1.0] * len(of))
    assert comparison["base_speedup"].tolist() == pytest.approx([math.exp(level + 0.0005) for level in range(len(of))])


def test_rows_stand_worst_first() -> None:
    """By verdict, and of one verdict the slowest first; without a value of a column is another case than with one."""
    assert [change.verdict for change in every_verdict()] == [*VERDICTS]
    speeds = dict(zip(cases(3), (0.9, 0.7, 0.8), strict=True))
    base, new = (table(*(at(of(speed), one) for one, speed in speeds.items())) for of in (lambda _: 1.0, float))
    assert compare(base, new)["num_tokens"].tolist() == [2, 3, 1]
    of_base, of_new = ([case("sdpa", qk_scale=None), other] for other in (case("sdpa", qk_scale=0.5), SELF))
    optional = compare(*(table(*(row(one, CLOSE) for one in side)) for side in (of_base, of_new)))
    assert optional["verdict"].tolist() == ["missing", "new", "equivalent"]


# over all rows

CHOSEN = {**row(SDPA, CLOSE), "standing": "named", "slowdown_low": 1.0, "slowdown_high": 1.05}


@pytest.mark.parametrize(
    ("base", "new", "lost"),
    [
        ({}, {}, 0),
        ({}, {"slowdown_low": 1.01}, 0),
        ({}, {"slowdown_low": 1.05}, 1),
        ({"standing": "fastest", "slowdown_high": 1.0}, {"status": "oom", "slowdown_low": None}, 1),
        ({"slowdown_high": 1.3}, {"slowdown_low": 1.05}, None),
        ({"standing": "open"}, {"slowdown_low": 1.05}, None),
    ],
)
def test_what_is_no_longer_to_use_is_told(base: Row, new: Row, lost: int | None) -> None:
    """A recommendation is lost if another is significantly faster, by over 2 %; one that costs 30 % wasn't one."""
    found, count = no_longer_to_use(compared(table({**CHOSEN, **base}), table({**CHOSEN, **new})))
    assert (len(found), count) == ((lost, 1) if lost is not None else (0, 0))


def test_nine_of_ten_changes_tell_which_change_is_excluded() -> None:
    """The bound is in whole percent, rounded up; one wild row doesn't change it, and if most are wild there is none."""
    changes = compared(*(table(*(row(each, NOISY) for each in cases(20))) for _ in range(2)))
    most = max(change.ratio.high - 1 for change in changes)
    bound, number = excluded(changes)
    assert round(100 * bound, 9).is_integer()
    assert most <= bound < most + 0.01
    assert number == 20
    wild = [dataclasses.replace(change, ratio=Interval(1.0, 0.0, math.inf)) for change in changes]
    assert excluded([*changes[:19], wild[0]]) == (bound, 19)
    assert math.isinf(excluded(wild)[0])


@pytest.mark.parametrize(
    ("base", "new", "reason"),
    [
        ([SDPA], [case("sdpa", threads=4)], "share no case: threads is 1 in BASE and 4 in NEW"),
        (
            [case("sdpa", num_tokens=1), case("eager", num_tokens=2)],
            [case("sdpa", num_tokens=2), case("eager", num_tokens=1)],
            "BASE and NEW share no case",
        ),
        (cases(60), [SDPA], "num_tokens is 1, 2, 3, 4 … in BASE and 197 in NEW"),
    ],
)
def test_tables_without_a_shared_case_are_not_comparable(base: list[Case], new: list[Case], reason: str) -> None:
    """The refusal names the columns in which they differ, with both sides' first values, on one line."""
    with pytest.raises(NotComparable, match=f"{reason}$"):
        compare(*(table(*(row(one, CLOSE) for one in side)) for side in (base, new)))


def test_speedups_over_different_baselines_are_not_comparable() -> None:
    """A ratio to eager and a ratio to sdpa have no ratio that means anything."""
    base = table(baseline(), row(SDPA, CLOSE))
    with pytest.raises(NotComparable, match="must have one baseline, but have eager in BASE and sdpa in NEW"):
        compare(base, base.assign(baseline="sdpa"))


@pytest.mark.parametrize("names", [(None, None), ("eager", None), (None, "sdpa")])
def test_a_baseline_that_a_table_does_not_name_is_not_guessed(names: tuple[str | None, str | None]) -> None:
    """Without its name on both sides no row is the baseline's, and a row whose ratios are all 1 decides nothing."""
    run = table(baseline(), row(SDPA, CLOSE))
    sides = [run.assign(baseline=pd.array([name] * 2, dtype="string")) for name in names]
    assert compare(*sides)["verdict"].tolist() == ["open", "equivalent"]


def test_a_case_that_stands_twice_is_refused() -> None:
    """Two rows of one case can't be matched; the refusal names side and case."""
    once, twice = table(row(SDPA, CLOSE)), table(row(SDPA, CLOSE), row(SDPA, CLOSE))
    for side, tables in (("BASE", (twice, once)), ("NEW", (once, twice))):
        with pytest.raises(WrongRequest, match=f"{side} has the case {SDPA.name} more than once"):
            compare(*tables)
