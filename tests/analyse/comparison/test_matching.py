"""Rows find each other by their case, and tables that can't be matched are refused."""

import math
from typing import Any

import pandas as pd
import pytest

from bench.analyse.comparison.compare import compare
from bench.plan.case import Case
from bench.plan.errors import NotComparable, WrongRequest
from tests.analyse.tables import baseline, cases, of_layers, row, table
from tests.examples import case

SDPA, SELF = case("sdpa"), case("sdpa", layer="self", num_heads=1, key_channels=6)
CLOSE = [-0.001, 0.0, 0.001]
"""Three processes that agree within a tenth of a percent."""


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
    """The refusal names the columns that keep them apart, with both sides' first values, on one line."""
    with pytest.raises(NotComparable, match=f"{reason}$"):
        compare(table(*(row(one, CLOSE) for one in base)), table(*(row(one, CLOSE) for one in new)))


def test_speedups_over_different_baselines_are_not_comparable() -> None:
    """A ratio to eager and a ratio to sdpa have no ratio that means anything."""
    base = table(baseline(), row(SDPA, CLOSE))
    new = table(row(case("eager"), CLOSE), row(SDPA, [0.0, 0.0, 0.0])).assign(baseline="sdpa")
    with pytest.raises(NotComparable, match="refer to eager in BASE and to sdpa in NEW"):
        compare(base, new)


@pytest.mark.parametrize("names", [(None, None), ("eager", None), (None, "sdpa")])
def test_a_baseline_that_a_table_does_not_name_is_not_guessed(names: tuple[str | None, str | None]) -> None:
    """Without its name on both sides no row is the baseline's, and a row whose ratios are all 1 decides nothing."""
    run = table(baseline(), row(SDPA, CLOSE))
    sides = [run.assign(baseline=pd.array([name] * 2, dtype="string")) for name in names]
    assert compare(*sides)["verdict"].tolist() == ["inconclusive", "equivalent"]


@pytest.mark.parametrize("side", ["BASE", "NEW"])
def test_a_case_that_stands_twice_is_refused(side: str) -> None:
    """Two rows of one case can't be matched; the refusal names side and case."""
    once, twice = table(row(SDPA, CLOSE)), table(row(SDPA, CLOSE), row(SDPA, CLOSE))
    with pytest.raises(WrongRequest, match=f"{side} holds the case {SDPA.name} more than once"):
        compare(*((twice, once) if side == "BASE" else (once, twice)))
