"""A verdict holds: no false alarms, planted changes are shown, and neither order nor direction matters."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.analyse.comparison import compare
from bench.plan.case import CASE_COLUMNS, Case
from bench.plan.errors import NotComparable, WrongRequest
from bench.plan.verdicts import VERDICTS, hyphened, named
from bench.show.rows import plain
from tests.make.records import case
from tests.make.rows import Row, baseline, cases, drawn, failed, of_layers, row, table
from tests.refusals import refusal

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
        (0.995, 0.1, {}, "equivalent"),
        (0.995, 0.1, {"margin": 0.0}, "slower"),
        (0.985, 0.1, {}, "slower"),
        (1.0, 50, {}, "open"),
    ],
)
def test_a_change_counts_beyond_the_margin(
    change: float, scatter: float, limits: dict[str, float], verdict: str
) -> None:
    """A speed-up of 2 that becomes 2.1 is faster; 0.5 % beyond doubt is equivalent, but not without a margin.

    1.5 % is slower though within 2 %, and noise is open. The machine is twice as slow, which plays no part.
    """
    result = judged(at(2.0, scatter=scatter), {**at(2.0 * change, scatter=scatter), "latency_s": 0.04}, **limits)
    assert (result["verdict"], result["change"]) == (verdict, pytest.approx(change))
    assert (result["base_speedup"], result["new_speedup"]) == pytest.approx((2.0, 2.0 * change))
    assert (result["base_latency_s"], result["new_latency_s"]) == (0.02, 0.04)


def test_interval_of_a_change_is_welchs() -> None:
    """Logarithms -h, 0, h on both sides: sd h, standard error h √(2/3), 4 degrees of freedom, t = 2.776.

    With all the scatter on one side, 2 degrees of freedom are left: t = 4.303.
    """
    both = judged(at(1.0, scatter=10), at(1.5, scatter=10))  # h = 0.01
    half = 2.77645 * 0.01 * math.sqrt(2 / 3)
    ends = 1.5 * math.exp(-half), 1.5 * math.exp(half)
    assert (both["change_low"], both["change_high"]) == pytest.approx(ends, rel=1e-6)
    one = judged(at(1.0, scatter=10), at(1.0, scatter=1e-6))
    assert math.log(one["change_high"]) == pytest.approx(4.30265 * 0.01 / math.sqrt(3), rel=1e-4)


@pytest.mark.parametrize(
    ("base", "new"),
    [([0.0], [0.7] * 3), (CLOSE, [0.7]), ([0.0], [0.7]), ([0.5] * 3, [1.2] * 3), ([-0.201, -0.2, -0.199], [0.5] * 3)],
)
def test_without_an_interval_on_both_sides_a_change_is_open(base: list[float], new: list[float]) -> None:
    """A single process has none, however large the change; processes that agree to the last bit come from no clock."""
    result = judged(row(SDPA, base), row(SDPA, new))
    assert (result["verdict"], result["change"]) == ("open", pytest.approx(math.exp(0.7)))
    assert result[["change_low", "change_high", "p", "p_holm"]].isna().all()


def test_a_row_without_a_ratio_is_open() -> None:
    """Where the baseline failed there is no speed-up."""
    result = judged(at(1.0), {**at(1.0), "speedup": None, "speedup_low": None, "speedup_high": None})
    assert (result["verdict"], pd.isna(result["change"])) == ("open", True)


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
    assert (result["verdict"], pd.isna(result["p"])) == (verdict, True)


def test_baseline_is_not_judged() -> None:
    """The baseline's ratio is 1 in every run: no p-value, and no part in the correction, with one process or five."""
    for processes in (1, 5):
        run = table(baseline(processes), at(1.0))
        comparison = compare(run, run)
        assert comparison["verdict"].tolist() == ["baseline", "equivalent"]
        assert pd.isna(comparison["p"][0])
        assert comparison["p_holm"][1] == comparison["p"][1]
    first, second = cases(2)  # exactly 1 by chance at one point: the ratios don't refer to sdpa
    run = table(baseline(1), row(first, [0.0]), row(second, [0.3]))
    assert compare(run, run)["verdict"].tolist() == ["baseline", "open", "open"]


# whole tables


def test_holm_corrects_over_the_judged_rows_alone() -> None:
    """Of two judged rows the smaller p counts twice; failures and the baseline don't count."""
    one, two, three, four = cases(4)
    base = table(baseline(), row(one, CLOSE), row(two, CLOSE), row(three, CLOSE), row(four, CLOSE))
    comparison = compare(base, table(baseline(), at(1.02, one), at(1.03, two), failed(three))).set_index("num_tokens")
    p, adjusted = comparison["p"].to_dict(), comparison["p_holm"].to_dict()
    assert p[2] < p[1]
    assert (adjusted[2], adjusted[1]) == pytest.approx((2 * p[2], p[1]))


def test_verdict_is_by_the_corrected_p_value() -> None:
    """What is slower as the only row of a table is open beside a second one."""
    one, two = cases(2)
    base, new, noisy = at(1.0, one, scatter=10), at(0.9, one, scatter=10), at(1.0, two, scatter=50)
    level = 1.5 * compare(table(base), table(new))["p"][0]
    assert compare(table(base), table(new), level=level)["verdict"].tolist() == ["slower"]
    together = compare(table(base, noisy), table(new, noisy), level=level)
    assert together["verdict"].tolist() == ["open", "open"]


def test_a_run_compared_with_itself_changed_nowhere() -> None:
    """Every ratio is 1, and nothing is faster or slower; no more is shown if 300 rows are measured again."""
    rng = np.random.default_rng(8)
    run = drawn(rng, cases(300))
    same, again = compare(run, run), compare(run, drawn(rng, cases(300)))
    assert set(same["change"]) == {1.0}
    assert Counter(same["verdict"]) == Counter(again["verdict"]) == {"equivalent": 300}


# properties


def measured(of: Case) -> st.SearchStrategy[Row]:
    """A row with a ratio within 10 % of 1, and processes that scatter by up to 1 %, or not at all."""
    return st.builds(
        lambda middle, scatter, processes: row(
            of, [middle + scatter * math.cos(2.4 * number) for number in range(processes)]
        ),
        st.floats(-0.1, 0.1),
        st.sampled_from([0.0, 1e-5, 1e-3, 1e-2]),
        st.integers(1, 8),
    )


@st.composite
def some_rows(draw: st.DrawFn) -> list[Row]:
    """Draw rows of a few cases in any order, each measured, failed or absent, and the first always measured."""
    one, *others = [*cases(3), *of_layers()[1:]]
    kinds = st.tuples(*(st.none() | st.just(failed(each)) | measured(each) for each in others))
    return [draw(measured(one)), *draw(st.permutations([each for each in draw(kinds) if each]))]


@pytest.mark.slow
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(some_rows(), some_rows(), st.randoms(use_true_random=False))
def test_a_verdict_is_its_cases_own(base_rows: list[Row], new_rows: list[Row], chance: Any) -> None:
    """No case is lost, none stands twice, and every verdict has its meaning; the order of rows changes nothing.

    If base and new are swapped, faster becomes slower, fixed newly failing, new missing, and the change inverts.
    """
    base, new = table(*base_rows), table(*new_rows)
    comparison = compare(base, new)
    there, back = by_case(comparison), by_case(compare(new, base))
    planned = {tuple(one[name] for name in CASE_COLUMNS) for one in (*base_rows, *new_rows)}
    assert len(comparison) == len(planned)
    assert there.keys() == back.keys() == planned
    assert set(comparison["verdict"]) <= set(VERDICTS)
    shuffled = (table(*chance.sample(rows, len(rows))) for rows in (base_rows, new_rows))
    assert by_case(compare(*shuffled)) == there
    for key, values in there.items():
        assert back[key]["verdict"] == OPPOSITE.get(values["verdict"], values["verdict"])
        assert [back[key][name] for name in ("p", "p_holm")] == [values[name] for name in ("p", "p_holm")]
        for one, other in (("change", "change"), ("change_low", "change_high"), ("change_high", "change_low")):
            assert (back[key][one] is None) == (values[other] is None)
            assert values[other] is None or back[key][one] == pytest.approx(1 / values[other])


# simulations


@pytest.mark.slow
def test_unchanged_tables_raise_no_alarm() -> None:
    """Of 50 tables of 60 unchanged rows over 10 processes, quiet rows and noisy ones, at most 2 hold any alarm.

    One in 100 is what the level of 1 % allows; 3 or more of 50 would come about in 1 of 70 tries.
    Uncorrected, some 10 would, so the figure is not won by silence.
    """
    rng, scatter = np.random.default_rng(2024), np.geomspace(0.005, 0.2, 60).tolist()
    comparisons = [compare(*(drawn(rng, cases(60), sd=scatter) for _ in range(2))) for _ in range(50)]
    assert sum(alarms(one) > 0 for one in comparisons) <= 2
    assert sum(bool((one["p"] < 0.01).any()) for one in comparisons) >= 5


@pytest.mark.parametrize(("change", "verdict"), [(-0.05, "slower"), (0.05, "faster")])
def test_planted_change_is_shown_among_unchanged_rows(change: float, verdict: str) -> None:
    """5 % in every third of 60 rows, scattering by 0.5 % over 10 processes: all are shown, and no others."""
    rng = np.random.default_rng(3)
    planted = cases(60)[::3]
    base, unchanged = drawn(rng, cases(60)), drawn(rng, [one for one in cases(60) if one not in planted])
    comparison = compare(base, pd.concat([drawn(rng, planted, middle=0.3 + math.log1p(change)), unchanged]))
    changed = comparison.loc[comparison["verdict"] == verdict, "num_tokens"].tolist()
    assert changed == [one.point.num_tokens for one in planted]
    assert alarms(comparison) == len(planted)


# verdicts by name


def test_every_verdict_has_one_word_of_the_command_line() -> None:
    """Commas separate them, spaces don't matter, and none is a list too; an unknown one is refused with all of them."""
    words = [hyphened(verdict) for verdict in VERDICTS]
    assert len({*words}) == len(VERDICTS)
    assert named(",".join(words)) == tuple(VERDICTS)
    assert (named(" missing , new ,"), named("")) == (("missing", "new"), ())
    for word in ("same", "newly failing", "Slower", "slower;missing"):
        line = refusal(named, f"missing,{word}")
        assert all(name in line for name in (repr(word), *words))


# matching


def test_rows_are_matched_by_case_and_not_by_place() -> None:
    """Cases that differ in one column are matched each with its own; layers lack optional columns."""
    variants: list[dict[str, Any]] = [{}, {"qkv_bias": True}, {"threads": 4}, {"allocator": "system"}, {"batch": 1}]
    of = [*(case("sdpa", **changes) for changes in variants), *of_layers()[1:]]
    rows = [row(one, [level, level + 0.001]) for level, one in enumerate(of)]
    comparison = compare(table(*rows), table(*reversed(rows)))
    assert comparison["change"].tolist() == pytest.approx([1.0] * len(of))
    assert comparison["base_speedup"].tolist() == pytest.approx([math.exp(level + 0.0005) for level in range(len(of))])


def test_rows_stand_in_the_order_of_base_then_of_new() -> None:
    """What is only in NEW follows what BASE holds; without a value of a column is another case than with one."""
    one, two, three = cases(3)
    comparison = compare(table(row(three, CLOSE), row(one, CLOSE)), table(row(two, CLOSE), row(one, CLOSE)))
    assert comparison["num_tokens"].tolist() == [3, 1, 2]
    assert comparison["verdict"].tolist() == ["missing", "equivalent", "new"]
    base, new = ([case("sdpa", qk_scale=None), other] for other in (case("sdpa", qk_scale=0.5), SELF))
    optional = compare(*(table(*(row(one, CLOSE) for one in side)) for side in (base, new)))
    assert optional["verdict"].tolist() == ["equivalent", "missing", "new"]


@pytest.mark.parametrize(
    ("base", "new", "reason"),
    [
        ([SDPA], [case("sdpa", threads=4)], "share no case: threads is 1 in BASE and 4 in NEW"),
        (
            [case("sdpa", num_tokens=1), case("eager", num_tokens=2)],
            [case("sdpa", num_tokens=2), case("eager", num_tokens=1)],
            "BASE and NEW share no case",
        ),
        (
            [SDPA],
            [Case.from_columns({**SELF.columns(), "layer": "vit", "num_heads": 6})],
            "share no case: key_channels is empty in BASE and 6 in NEW",
        ),
        (cases(60), [SDPA], "num_tokens is 1, 2, 3, 4 … in BASE and 197 in NEW"),
    ],
    ids=["one column", "no single column", "empty", "many values"],
)
def test_tables_without_a_shared_case_are_not_comparable(base: list[Case], new: list[Case], reason: str) -> None:
    """The refusal names the columns in which they differ, with both sides' first values, on one line."""
    with pytest.raises(NotComparable, match=f"{reason}$"):
        compare(*(table(*(row(one, CLOSE) for one in side)) for side in (base, new)))


def test_speedups_over_different_baselines_are_not_comparable() -> None:
    """A ratio to eager and a ratio to sdpa have no ratio that means anything."""
    base = table(baseline(), row(SDPA, CLOSE))
    with pytest.raises(NotComparable, match="refer to eager in BASE and to sdpa in NEW"):
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
        with pytest.raises(WrongRequest, match=f"{side} holds the case {SDPA.name} more than once"):
            compare(*tables)
