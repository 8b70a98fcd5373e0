"""What a check of a table says: regret, fidelity, and who is measured on."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it has no types
import pytest

from bench.analyse import table_check
from bench.analyse.summary import of_records
from bench.analyse.table_check import TABLE, Checked
from bench.plan.case import Case
from bench.stats.estimates import Interval
from tests.commands.test_export import SCHEMA
from tests.make.choices import written
from tests.make.points import vit_s
from tests.make.records import measured

FOLLOWER = "measured[table=table.json]"
SHAPES = {300: "manual", 700: "online"}
"""The core that the table names, by the tokens of the shapes that are checked."""


def table(folder: Path) -> Path:
    """Return a table of two points, near which the shapes are."""
    sizes = {"batch": 8, "num_heads": 6, "channels": 384, "head_width": 64}
    points = [
        {**sizes, "num_tokens": tokens, "implementation": core} for tokens, core in ((256, "manual"), (800, "online"))
    ]
    return written(folder, *points)


def checked(folder: Path, seconds: Mapping[str, float], kernels: Mapping[str, Sequence[str]]) -> list[Checked]:
    """Return the check of two shapes at which cores took some seconds, and ran some kernels."""
    records = [
        measured(Case(vit_s(num_tokens=tokens), name), process, value_s)
        for tokens in SHAPES
        for name, value_s in seconds.items()
        for process in range(6)
    ]
    records = [
        dataclasses.replace(each, metrics={**each.metrics, "kernels": tuple(kernels[each.case.implementation])})
        for each in records
    ]
    return table_check.checked(of_records(records, "sdpa"), FOLLOWER, table(folder))


SECONDS = {"sdpa": 1.1, "eager": 2.0, "manual": 1.0, "online": 1.5, FOLLOWER: 1.2}
KERNELS = {
    "sdpa": ["flash"],
    "eager": ["bmm", "softmax"],
    "manual": ["einsum"],
    "online": ["bmm"],
    FOLLOWER: ["einsum"],
}


def test_regret_is_the_distance_from_the_fastest_core(tmp_path: Path) -> None:
    """That of the table is what its follower took, those of the other rules what their core took."""
    for each in checked(tmp_path, SECONDS, KERNELS):
        assert each.core == SHAPES[each.point.num_tokens]
        values = {rule: regret.value for rule, regret in each.regrets.items()}
        assert values == pytest.approx({TABLE: 0.2, "sdpa": 0.1, "eager": 1.0}, abs=0.01)
        assert all(regret.low <= regret.value <= regret.high for regret in each.regrets.values())


def test_a_follower_that_runs_another_core_is_not_faithful(tmp_path: Path) -> None:
    """Its kernels are those of the core that the table names, or they are not; unknown ones say nothing."""
    of = checked(tmp_path, SECONDS, KERNELS)
    assert [each.ran_it for each in of] == [True, False]
    assert table_check.fidelity(of) == 0.5
    unknown = checked(tmp_path, SECONDS, KERNELS | {"online": []})
    assert [each.ran_it for each in unknown] == [True, None]
    assert table_check.fidelity(unknown) == 1
    assert math.isnan(table_check.fidelity(unknown[1:]))


def regrets(*of: tuple[float, float], rule: str = TABLE) -> list[Checked]:
    """Return shapes at which a rule has these regrets and upper bounds."""
    return [
        Checked(vit_s(num_tokens=at), "sdpa", True, {rule: Interval(value, 0.0, high)})
        for at, (value, high) in enumerate(of, 1)
    ]


def test_the_mean_and_the_most_over_shapes() -> None:
    """The mean is that of ratios; the most is where the bound is largest."""
    of = regrets((0.0, 0.01), (0.21, 0.44))
    assert table_check.mean(of, TABLE).value == pytest.approx(0.1)
    assert table_check.mean(of, TABLE).high == pytest.approx(math.sqrt(1.01 * 1.44) - 1)
    assert table_check.most(of, TABLE) == Interval(0.21, 0.0, 0.44)


def test_what_a_table_carries_keeps_its_schema(tmp_path: Path) -> None:
    """The figures are shares; a bound that isn't known is null."""
    entry = table_check.entry(checked(tmp_path, SECONDS, KERNELS), "run-check")
    assert entry["regret"][TABLE]["mean"] == pytest.approx(0.2, abs=0.01)
    assert (entry["run"], entry["shapes"], entry["fidelity"]) == ("run-check", 2, 0.5)
    jsonschema.validate(entry, SCHEMA["properties"]["check"])
    unknown = table_check.entry(regrets((0.1, math.nan)), "run")
    assert unknown["regret"] == {TABLE: {"mean": 0.1, "mean_high": None, "most": 0.1, "most_high": None}}


def answered(seconds: Mapping[str, float], bound: float, scatter: float) -> Any:
    """Return the answer at a shape at which cores took some seconds, give or take a scatter."""
    records = [
        measured(Case(vit_s(), name), process, value_s, scatter=scatter)
        for name, value_s in seconds.items()
        for process in range(4)
    ]
    summary = of_records(records, "sdpa")
    return table_check.answer(summary.contrasts(vit_s()), FOLLOWER, bound, 4)


def test_a_check_measures_until_the_distance_of_the_follower_is_known() -> None:
    """One that is far ahead by a known distance needs no more; one that may be ahead by more than the bound does."""
    assert answered(SECONDS, 0.02, 1e-4).is_good
    close = answered({**SECONDS, FOLLOWER: 1.0}, 0.02, 0.1)
    assert close.named == FOLLOWER
    assert {FOLLOWER, "sdpa", "manual"} <= {*close.candidates}
    assert len(close.needed) == len(close.candidates)
    assert all(each > 0 for each in close.needed)
    assert not answered({"sdpa": 1.0, "manual": 1.0}, 0.02, 1e-4).named
