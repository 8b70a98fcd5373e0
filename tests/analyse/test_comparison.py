"""A verdict holds: no false alarms, planted changes are found, and neither order nor direction matters."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.analyse.comparison import VERDICTS, History, compare, history, hyphened, named, regressed, run_of
from bench.analyse.summary import summarise
from bench.plan.case import CASE_COLUMNS, Case
from bench.plan.errors import NotComparable, WrongRequest
from bench.show.rows import plain
from bench.stats.between_runs import BetweenRuns
from bench.store import table as store
from bench.store.saved_run import SavedRun
from tests.analyse.tables import Row, baseline, cases, drawn, failed, of_layers, row, table
from tests.examples import case, record
from tests.refusals import refusal
from tests.show.pages.runs_in_time import weekly

SDPA = case("sdpa")
CLOSE = [-0.001, 0.0, 0.001]
"""Three processes that agree within a tenth of a percent."""

OPPOSITE = {"faster": "slower", "newly failing": "fixed", "missing": "new"}
OPPOSITE |= {after: before for before, after in OPPOSITE.items()}


# one row


@pytest.mark.parametrize(
    ("change", "verdict"),
    [(0.95, "slower"), (0.9995, "equivalent"), (1.0, "equivalent"), (1.0005, "equivalent"), (1.05, "faster")],
)
def test_speedup_that_grew_is_faster(change: float, verdict: str) -> None:
    """A speed-up of 2 that becomes 2.1 is faster, 1.9 is slower, and 2.001 is neither."""
    found = judged(at(2.0), at(2.0 * change))
    assert found["verdict"] == verdict
    assert found["change"] == pytest.approx(change)
    assert (found["base_speedup"], found["new_speedup"]) == pytest.approx((2.0, 2.0 * change))


def test_interval_of_a_change_is_welchs() -> None:
    """Logarithms -h, 0, h on both sides: sd h, standard error h √(2/3), 4 degrees of freedom, t = 2.776."""
    found = judged(at(1.0, scatter=10), at(1.5, scatter=10))  # h = 0.01
    half = 2.77645 * 0.01 * math.sqrt(2 / 3)
    assert found["change_low"] == pytest.approx(1.5 * math.exp(-half), rel=1e-6)
    assert found["change_high"] == pytest.approx(1.5 * math.exp(half), rel=1e-6)


def test_interval_holds_what_runs_differ_by() -> None:
    """1.5 % on each side, known well, for one thread; a change that was faster is then inconclusive."""
    plain = judged(at(1.0), at(1.03))
    known, elsewhere = {1: BetweenRuns(0.015, 1e6)}, {2: BetweenRuns(0.015, 1e6)}
    widened = judged(at(1.0), at(1.03), between_runs=[known, known])
    assert (plain["verdict"], widened["verdict"]) == ("faster", "inconclusive")
    assert math.log(widened["change_high"] / 1.03) == pytest.approx(1.96 * 0.015 * math.sqrt(2), rel=0.02)
    assert judged(at(1.0), at(1.03), between_runs=[elsewhere, {}])["change_high"] == pytest.approx(plain["change_high"])


def test_interval_holds_what_the_rows_differ_by() -> None:
    """Ten points of three implementations, 3 % apart by their occasion: no alarm, but one 25 % slower is found."""
    names, tokens = ("sdpa", "mha", "online"), range(100, 1100, 100)
    rng = np.random.default_rng(1)
    of = [case(name, num_tokens=size) for size in tokens for name in names]
    shifts = rng.normal(0, 0.03, len(of))
    before = [at(2.0, of=each) for each in of]
    after = [at(2.0 * math.exp(shift), of=each) for each, shift in zip(of, shifts, strict=True)]
    alike = compare(table(*before), table(*after))
    assert not regressed(alike, ("slower", "faster"))
    after[0] = at(1.5, of=of[0])
    assert compare(table(*before), table(*after))["verdict"].tolist().count("slower") == 1
    few = compare(table(*before[:9]), table(*after[:9]))
    assert (few["verdict"] == "slower").sum() > 1


def test_interval_is_wide_where_one_side_scatters() -> None:
    """With all the scatter on one side of 3 processes, 2 degrees of freedom are left: t = 4.303."""
    found = judged(at(1.0, scatter=10), at(1.0, scatter=1e-6))
    assert math.log(found["change_high"]) == pytest.approx(4.30265 * 0.01 / math.sqrt(3), rel=1e-4)


@pytest.mark.parametrize(
    ("change", "scatter", "limits", "verdict"),
    [
        (0.995, 0.1, {}, "equivalent"),
        (0.995, 0.1, {"margin": 0.0}, "slower"),
        (0.985, 0.1, {}, "slower"),
        (1.0, 1.0, {}, "equivalent"),
        (1.0, 50, {}, "inconclusive"),
    ],
)
def test_a_change_counts_beyond_the_margin(
    change: float, scatter: float, limits: dict[str, float], verdict: str
) -> None:
    """0.5 % beyond doubt is equivalent, but not without a margin; 1.5 % is slower though within 2 %; noise is open."""
    assert judged(at(1.0, scatter=scatter), at(change, scatter=scatter), **limits)["verdict"] == verdict


def test_change_is_not_judged_by_raw_times() -> None:
    """A machine that is twice as slow, with the same ratios, changed nothing."""
    found = judged({**at(1.5), "latency_s": 0.01}, {**at(1.5), "latency_s": 0.02})
    assert found["verdict"] == "equivalent"
    assert (found["base_latency_s"], found["new_latency_s"]) == (0.01, 0.02)


@pytest.mark.parametrize("side", ["base", "new", "both"])
def test_one_process_is_inconclusive(side: str) -> None:
    """Without a second process on both sides there is a change and no interval, however large the change."""
    base = row(SDPA, [0.0]) if side in ("base", "both") else at(1.0)
    new = row(SDPA, [0.7]) if side in ("new", "both") else at(2.0)
    found = judged(base, new)
    assert found["verdict"] == "inconclusive"
    assert found["change"] == pytest.approx(2.0, rel=0.01)
    assert all(pd.isna(found[name]) for name in ("change_low", "change_high", "p", "p_holm"))


def test_what_has_no_interval_is_inconclusive() -> None:
    """Processes that agree to the last bit come from no clock; where the baseline failed there is no ratio."""
    exact = judged(row(SDPA, [0.5, 0.5, 0.5]), row(SDPA, [0.1, 0.1, 0.1]))
    without_ratio = judged(at(1.0), {**at(1.0), "speedup": None, "speedup_low": None, "speedup_high": None})
    assert {exact["verdict"], without_ratio["verdict"]} == {"inconclusive"}
    assert pd.isna(exact["change_low"])
    assert pd.isna(without_ratio["change"])


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
    found = judged(base, new)
    assert found["verdict"] == verdict
    assert pd.isna(found["p"])


@pytest.mark.parametrize("processes", [1, 5])
def test_baseline_is_not_judged(processes: int) -> None:
    """The baseline's ratio is 1 in every run: no p-value, and no part in the correction."""
    run = table(baseline(processes), at(1.0))
    comparison = compare(run, run)
    assert comparison["verdict"].tolist() == ["baseline", "equivalent"]
    assert pd.isna(comparison["p"][0])
    assert comparison["p_holm"][1] == comparison["p"][1]


def test_chance_ratio_of_one_is_judged_like_its_siblings() -> None:
    """Exactly 1 at one point, in one process, and not at another: the ratios don't refer to sdpa."""
    first, second = cases(2)
    run = table(baseline(1), row(first, [0.0]), row(second, [0.3]))
    assert compare(run, run)["verdict"].tolist() == ["baseline", "inconclusive", "inconclusive"]


# whole tables


def test_holm_corrects_over_the_judged_rows_alone() -> None:
    """Of two judged rows the smaller p counts twice; failures and the baseline don't count."""
    one, two, three, four = cases(4)
    base = table(baseline(), row(one, CLOSE), row(two, CLOSE), row(three, CLOSE), row(four, CLOSE))
    new = table(baseline(), at(1.02, one), at(1.03, two), failed(three))
    found = compare(base, new).set_index("num_tokens")
    p, adjusted = found["p"].to_dict(), found["p_holm"].to_dict()
    assert p[2] < p[1]
    assert adjusted[2] == pytest.approx(2 * p[2])
    assert adjusted[1] == pytest.approx(p[1])


def test_verdict_is_by_the_corrected_p_value() -> None:
    """What is slower as the only row of a table is inconclusive in the company of a second one."""
    one, two = cases(2)
    base, new = at(1.0, one, scatter=10), at(0.9, one, scatter=10)
    noisy = at(1.0, two, scatter=50)
    p = compare(table(base), table(new))["p"][0]
    alone = compare(table(base), table(new), level=1.5 * p)
    beside = compare(table(base, noisy), table(new, noisy), level=1.5 * p)
    assert alone["verdict"].tolist() == ["slower"]
    assert beside["verdict"].tolist() == ["inconclusive", "inconclusive"]


def test_result_survives_the_file(tmp_path: Any) -> None:
    """Tables that went through results.csv give the same comparison, the baseline recognised."""
    rng = np.random.default_rng(4)
    base = pd.concat([table(baseline()), drawn(rng, cases(4))], ignore_index=True)
    new = pd.concat([table(baseline()), drawn(rng, cases(4), middle=0.2)], ignore_index=True)
    read = []
    for name, one in [("base", base), ("new", new)]:
        (tmp_path / name).mkdir()
        store.save(one, tmp_path / name)
        read.append(store.load(tmp_path / name))
    pd.testing.assert_frame_equal(compare(*read), compare(base, new), check_exact=False, rtol=1e-9)


def test_a_run_compared_with_itself_changed_nowhere() -> None:
    """Every ratio is 1, and nothing is faster or slower; no more is found if 300 rows are measured again."""
    rng = np.random.default_rng(8)
    run = drawn(rng, cases(300))
    same, again = compare(run, run), compare(run, drawn(rng, cases(300)))
    assert set(same["change"]) == {1.0}
    assert Counter(same["verdict"]) == Counter(again["verdict"]) == {"equivalent": 300}


@pytest.mark.parametrize(
    ("verdict", "new"),
    [
        ("slower", [-0.3, -0.301, -0.299]),
        ("newly failing", None),
        ("faster", [0.3, 0.301, 0.299]),
        ("equivalent", CLOSE),
    ],
)
def test_regression_is_a_slower_row_or_what_is_asked_for(verdict: str, new: list[float] | None) -> None:
    """A row that became slower is one; others are where their verdict is named."""
    found = compare(table(row(SDPA, CLOSE)), table(failed(SDPA) if new is None else row(SDPA, new)))
    assert found["verdict"].tolist() == [verdict]
    assert regressed(found) == (verdict in ("slower", "newly failing"))
    assert regressed(found, ["missing", verdict])
    assert not regressed(found, [])


# refusals


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("margin", value) for value in (-0.01, math.nan, math.inf)],
        *[("equivalence", value) for value in (0.0, math.nan, math.inf)],
        *[("level", value) for value in (0.0, 1.0, math.nan)],
    ],
)
def test_impossible_limits_are_refused(name: str, value: float) -> None:
    """The refusal names the limit and its value."""
    run = table(row(SDPA, CLOSE))
    with pytest.raises(WrongRequest, match=f"{name} = {value} must"):
        compare(run, run, **{name: value})  # type: ignore[arg-type]  # the name is a limit


# properties


@st.composite
def sides(draw: st.DrawFn) -> tuple[list[Row], list[Row]]:
    """Draw two tables over the same few cases, each row measured, failed or absent, and one row always shared."""
    one, *others = [*cases(3), *of_layers()[1:]]
    return (
        [draw(measured(one)), *draw(some_rows(others))],
        [draw(measured(one)), *draw(some_rows(others))],
    )


def some_rows(of: list[Any]) -> st.SearchStrategy[list[Row]]:
    """Rows of some of these cases, in any order."""
    kinds = st.tuples(*(st.none() | st.just(failed(one)) | measured(one) for one in of))
    return kinds.map(lambda rows: [row for row in rows if row]).flatmap(st.permutations)


def measured(of: Any) -> st.SearchStrategy[Row]:
    """A row with a ratio within 10 % of 1, and processes that scatter by up to 1 %, or not at all."""
    return st.builds(
        lambda middle, scatter, processes: row(
            of, [middle + scatter * math.cos(2.4 * number) for number in range(processes)]
        ),
        st.floats(-0.1, 0.1),
        st.sampled_from([0.0, 1e-5, 1e-3, 1e-2]),
        st.integers(1, 8),
    )


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sides(), st.randoms(use_true_random=False))
def test_a_verdict_is_its_cases_own(drawn_sides: tuple[list[Row], list[Row]], chance: Any) -> None:
    """No case is lost, none stands twice, and every verdict has its meaning; the order of rows changes nothing.

    If base and new are swapped, faster becomes slower, fixed newly failing, new missing, and the change inverts.
    """
    base, new = (table(*rows) for rows in drawn_sides)
    found = compare(base, new)
    there, back = by_case(found), by_case(compare(new, base))
    planned = {tuple(one[name] for name in CASE_COLUMNS) for rows in drawn_sides for one in rows}
    assert len(found) == len(planned)
    assert there.keys() == back.keys() == planned
    assert set(found["verdict"]) <= set(VERDICTS)
    assert by_case(compare(*(table(*chance.sample(rows, len(rows))) for rows in drawn_sides))) == there
    for key, values in there.items():
        assert back[key]["verdict"] == OPPOSITE.get(values["verdict"], values["verdict"])
        assert [back[key][name] for name in ("p", "p_holm")] == [values[name] for name in ("p", "p_holm")]
        for one, other in (("change", "change"), ("change_low", "change_high"), ("change_high", "change_low")):
            assert (back[key][one] is None) == (values[other] is None)
            if values[other] is not None:
                assert back[key][one] == pytest.approx(1 / values[other])


# simulations


@pytest.mark.slow
def test_unchanged_tables_raise_no_alarm() -> None:
    """Of 100 tables of 60 unchanged rows over 10 processes, quiet rows and noisy ones, at most 3 hold any alarm.

    One is what the level of 1 % allows; 4 or more would come about in 2 of 100 tries.
    Uncorrected, some 20 would, so the figure is not won by silence.
    """
    rng = np.random.default_rng(2024)
    scatter = np.geomspace(0.005, 0.2, 60).tolist()
    found = [compare(drawn(rng, cases(60), sd=scatter), drawn(rng, cases(60), sd=scatter)) for _ in range(100)]
    assert sum(alarms(one) > 0 for one in found) <= 3
    assert sum(bool((one["p"] < 0.01).any()) for one in found) >= 10


@pytest.mark.parametrize(("change", "verdict"), [(-0.05, "slower"), (0.05, "faster")])
def test_planted_change_is_found_among_unchanged_rows(change: float, verdict: str) -> None:
    """5 % in every third of 60 rows, scattering by 0.5 % over 10 processes: all are found, and no others."""
    rng = np.random.default_rng(3)
    planted = cases(60)[::3]
    base = drawn(rng, cases(60))
    new = pd.concat(
        [
            drawn(rng, planted, middle=0.3 + math.log1p(change)),
            drawn(rng, [one for one in cases(60) if one not in planted]),
        ]
    )
    found = compare(base, new)
    assert found.loc[found["verdict"] == verdict, "num_tokens"].tolist() == [one.point.num_tokens for one in planted]
    assert alarms(found) == len(planted)


def test_rows_that_changed_by_the_bound_are_rarely_found_equivalent() -> None:
    """Of 2,000 rows that changed by 2 % exactly, some 5 % are taken as equivalent: the stated risk of a row."""
    rng = np.random.default_rng(9)
    new = drawn(rng, cases(2000), middle=0.3 + math.log1p(0.02), sd=0.01)
    found = compare(drawn(rng, cases(2000), sd=0.01), new)
    share = float((found["verdict"] == "equivalent").mean())
    assert share == pytest.approx(0.05, abs=0.02)


def at(speedup: float, of: Any = SDPA, scatter: float = 1.0) -> Row:
    """Return a row of three processes about a speed-up; they scatter by `scatter` tenths of a percent."""
    return row(of, [math.log(speedup) + scatter * value for value in CLOSE])


def judged(base: Row | None, new: Row | None, **limits: Any) -> "pd.Series[Any]":
    """Return the comparison of one case, a None standing for a side that lacks it."""
    other = row(case("other"), [0.0])  # shared, so that the tables are comparable, and of one process, so not judged
    found = compare(*(table(other, *([one] if one else [])) for one in (base, new)), **limits)
    return found[found["implementation"] == "sdpa"].iloc[0]


def by_case(found: pd.DataFrame) -> dict[Any, dict[str, Any]]:
    """Return the rows of a comparison under their cases."""
    return {tuple(values[name] for name in CASE_COLUMNS): values for values in plain(found)}


def alarms(found: pd.DataFrame) -> int:
    """Return the number of rows that are called faster or slower."""
    return int(found["verdict"].isin(["faster", "slower"]).sum())


def test_every_verdict_has_one_word_and_is_found_by_it() -> None:
    """What the command line is given by is told apart, and nothing needs quotes."""
    words = [hyphened(verdict) for verdict in VERDICTS]
    assert len(set(words)) == len(VERDICTS)
    assert not any(" " in word for word in words)
    assert named(",".join(words)) == tuple(VERDICTS)


@pytest.mark.parametrize(
    ("words", "verdicts"),
    [
        ("slower", ("slower",)),
        ("slower,newly-failing", ("slower", "newly failing")),
        (" missing , new ,", ("missing", "new")),
        ("", ()),
    ],
)
def test_lists_of_verdicts_are_read(words: str, verdicts: tuple[str, ...]) -> None:
    """Commas part them, blanks around them don't matter, and none is a list too."""
    assert named(words) == verdicts


@pytest.mark.parametrize("word", ["same", "newly failing", "Slower", "slower;missing"])
def test_an_unknown_verdict_is_refused_with_those_that_there_are(word: str) -> None:
    """The refusal is one line with every name as it is to be written."""
    line = refusal(named, f"missing,{word}")
    assert all(name in line for name in (repr(word), *map(hyphened, VERDICTS)))


SDPA_of_matching, SELF = case("sdpa"), case("sdpa", layer="self", num_heads=1, key_channels=6)


def test_rows_are_matched_by_case_and_not_by_place() -> None:
    """Cases that differ in one column only stay apart, and each finds its own."""
    variants: list[dict[str, Any]] = [{}, {"qkv_bias": True}, {"threads": 4}, {"allocator": "system"}, {"batch": 1}]
    rows = [row(case("sdpa", **changes), [level, level + 0.001]) for level, changes in enumerate(variants)]
    found = compare(table(*rows), table(*reversed(rows)))
    assert found["change"].tolist() == pytest.approx([1.0] * len(variants))
    assert found["base_speedup"].tolist() == pytest.approx([math.exp(level + 0.0005) for level in range(len(variants))])


def test_rows_stand_in_the_order_of_base_then_of_new() -> None:
    """What is only in NEW follows what BASE holds."""
    one, two, three = cases(3)
    found = compare(table(row(three, CLOSE), row(one, CLOSE)), table(row(two, CLOSE), row(one, CLOSE)))
    assert found["num_tokens"].tolist() == [3, 1, 2]
    assert found["verdict"].tolist() == ["missing", "equivalent", "new"]


def test_columns_that_a_layer_lacks_match() -> None:
    """Cases of all layers in one table find each other, though most lack one or another optional column."""
    rows = [row(one, [0.1 * place, 0.1 * place + 0.001]) for place, one in enumerate(of_layers())]
    found = compare(table(*rows), table(*reversed(rows)))
    assert found["base_speedup"].tolist() == found["new_speedup"].tolist()
    assert len(found) == len(rows)
    assert set(found["verdict"]) == {"equivalent"}


def test_an_optional_column_that_differs_keeps_cases_apart() -> None:
    """Without a value is another case than with one, and so are two values."""
    base, new = [case("sdpa", qk_scale=None), case("sdpa", qk_scale=0.5)], [case("sdpa", qk_scale=None), SELF]
    found = compare(table(*(row(one, CLOSE) for one in base)), table(*(row(one, CLOSE) for one in new)))
    assert found["verdict"].tolist() == ["equivalent", "missing", "new"]


@pytest.mark.parametrize(
    ("base", "new", "reason"),
    [
        ([SDPA_of_matching], [case("sdpa", threads=4)], "share no case: threads is 1 in BASE and 4 in NEW"),
        (
            [case("sdpa", num_tokens=1), case("eager", num_tokens=2)],
            [case("sdpa", num_tokens=2), case("eager", num_tokens=1)],
            "BASE and NEW share no case",
        ),
        (
            [SDPA_of_matching],
            [Case.from_columns({**SELF.columns(), "layer": "vit", "num_heads": 6})],
            "share no case: key_channels is empty in BASE and 6 in NEW",
        ),
        (cases(60), [SDPA_of_matching], "num_tokens is 1, 2, 3, 4 … in BASE and 197 in NEW"),
    ],
    ids=["one column", "no single column", "empty", "many values"],
)
def test_tables_without_a_shared_case_are_not_comparable(base: list[Case], new: list[Case], reason: str) -> None:
    """The refusal names the columns that keep them apart, with both sides' first values, on one line."""
    with pytest.raises(NotComparable, match=f"{reason}$"):
        compare(table(*(row(one, CLOSE) for one in base)), table(*(row(one, CLOSE) for one in new)))


def test_speedups_over_different_baselines_are_not_comparable() -> None:
    """A ratio to eager and a ratio to sdpa have no ratio that means anything."""
    base = table(baseline(), row(SDPA_of_matching, CLOSE))
    new = table(row(case("eager"), CLOSE), row(SDPA_of_matching, [0.0, 0.0, 0.0])).assign(baseline="sdpa")
    with pytest.raises(NotComparable, match="refer to eager in BASE and to sdpa in NEW"):
        compare(base, new)


@pytest.mark.parametrize("names", [(None, None), ("eager", None), (None, "sdpa")])
def test_a_baseline_that_a_table_does_not_name_is_not_guessed(names: tuple[str | None, str | None]) -> None:
    """Without its name on both sides no row is the baseline's, and a row whose ratios are all 1 decides nothing."""
    run = table(baseline(), row(SDPA_of_matching, CLOSE))
    sides = [run.assign(baseline=pd.array([name] * 2, dtype="string")) for name in names]
    assert compare(*sides)["verdict"].tolist() == ["inconclusive", "equivalent"]


@pytest.mark.parametrize("side", ["BASE", "NEW"])
def test_a_case_that_stands_twice_is_refused(side: str) -> None:
    """Two rows of one case can't be matched; the refusal names side and case."""
    once, twice = table(row(SDPA_of_matching, CLOSE)), table(row(SDPA_of_matching, CLOSE), row(SDPA_of_matching, CLOSE))
    with pytest.raises(WrongRequest, match=f"{side} holds the case {SDPA_of_matching.name} more than once"):
        compare(*((twice, once) if side == "BASE" else (once, twice)))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Return the history of four weeks: sdpa becomes faster in the third."""
    folders = weekly(tmp_path_factory.mktemp("weeks") / "runs", (0.5, 0.5, 0.4, 0.4))
    return history([run_of(folder.name, SavedRun(folder).table) for folder in reversed(folders)])


def test_runs_are_ordered_by_their_beginning(found: History) -> None:
    """However they are given; each has its versions."""
    assert [run.name for run in found.runs] == ["week-1", "week-2", "week-3", "week-4"]
    assert found.runs[2].version.startswith("torch 2.12.0, commit ") or "2.12.0" in found.runs[2].version
    assert found.baseline == "eager"


def test_each_case_has_its_speedup_in_each_run(found: History) -> None:
    """The baseline, whose speed-up is 1 by construction, has none."""
    assert {case.implementation for case in found.entries} == {"sdpa"}
    for entries in found.entries.values():
        assert [entry.speedup.value for entry in entries.values()] == pytest.approx([2, 2, 2.5, 2.5], rel=0.01)


def test_a_step_is_where_a_change_is_shown(found: History) -> None:
    """Nowhere else."""
    for entries in found.entries.values():
        assert [entry.step for entry in entries.values()] == ["", "", "faster", ""]


def test_runs_with_other_baselines_are_refused() -> None:
    """Their speed-ups say different things."""
    runs = [run_of(name, summarise([record("eager"), record("sdpa")], name)) for name in ("eager", "sdpa")]
    assert "must have one baseline, got eager: eager, sdpa: sdpa" in refusal(history, runs)
