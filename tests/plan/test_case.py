"""Points and cases: their names, and their columns."""

import re
from typing import Any

import pytest
from hypothesis import example, given, settings

from bench.plan.case import CASE_COLUMNS, COLUMNS, POINT_COLUMNS, Case, Point
from bench.plan.columns import REQUIRED
from tests.examples import POINT, cases, point, points


def test_columns_are_those_of_the_contract() -> None:
    """The columns of a case and their order are part of the format of results.csv; a point has all but one."""
    assert ", ".join(CASE_COLUMNS) == (
        "layer, implementation, device, dtype, mode, batch, num_tokens, token_len, channels, num_heads, "
        "qkv_bias, qk_scale, key_channels, image_size, patch_size, mask, threads, allocator, timing"
    )
    assert set(CASE_COLUMNS) - set(POINT_COLUMNS) == {"implementation"}


@given(cases)
def test_columns_hold_the_whole_case(case: Case) -> None:
    """A case can be read back from its columns, which stand in the order of the contract."""
    columns = case.columns()

    assert tuple(columns) == CASE_COLUMNS
    assert Case.from_columns(columns) == case


def test_columns_of_later_schemas_may_be_missing() -> None:
    """A row from before a column of the case was there gives the case in which it went without saying."""
    later = {"qk_scale", "key_channels", "image_size", "patch_size", "mask"}
    columns = {name: value for name, value in Case(point(), "sdpa").columns().items() if name not in later}

    assert {name for name, column in COLUMNS.items() if column.absent is not REQUIRED} == later
    assert Case.from_columns(columns) == Case(point(), "sdpa")


def test_other_columns_are_passed_over() -> None:
    """A case is read from a row that holds more than the case."""
    case = Case(point(), "sdpa")

    assert Case.from_columns({"latency_s": 0.5, **case.columns(), "status": "ok"}) == case


@pytest.mark.parametrize("name", ["layer", "implementation", "num_heads", "timing"])
def test_a_missing_column_is_a_key_error(name: str) -> None:
    """A row without a column of the case gives no case, and the column is named."""
    columns = Case(point(), "sdpa").columns()
    del columns[name]

    with pytest.raises(KeyError, match=name):
        Case.from_columns(columns)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "vit-cpu-float32-inference-b8-n197-c384-h6-t1"),
        ({"token_len": 49, "channels": 64}, "vit-cpu-float32-inference-b8-n197-w49-c64-h6-t1"),
        ({"qkv_bias": True}, "vit-cpu-float32-inference-b8-n197-c384-h6-bias-t1"),
        ({"mask": "causal"}, "vit-cpu-float32-inference-b8-n197-c384-h6-causal-t1"),
        ({"layer": "mylayer:MyAttention"}, "mylayer.MyAttention-cpu-float32-inference-b8-n197-c384-h6-t1"),
        ({"allocator": "system"}, "vit-cpu-float32-inference-b8-n197-c384-h6-t1-system"),
        ({"device": "cuda:1", "timing": "device-hot"}, "vit-cuda1-float32-inference-b8-n197-c384-h6-t1-device-hot"),
    ],
)
def test_name_of_a_point(changes: dict[str, Any], name: str) -> None:
    """A point's name says what is fixed, in one word, and leaves out what is usual; a case's says who computes it."""
    assert point(**changes).name == name
    assert Case(point(**changes), "sdpa").name == f"{name}-sdpa"


@pytest.mark.parametrize("column", POINT)
def test_every_column_is_part_of_the_identity(column: str) -> None:
    """Points that differ in one column are different, and so are their names."""
    other = {
        "layer": "conv", "device": "cuda:0", "dtype": "bfloat16", "mode": "train", "qkv_bias": True, "qk_scale": 0.3,
        "mask": "causal", "allocator": "system", "timing": "device-hot",
    }  # fmt: skip
    changed = point(**{column: other.get(column, 13)})

    assert changed != point()
    assert changed.name != point().name


@settings(deadline=None)
@given(points, points)
@example(point(device="cuda"), point(device="cuda:0"))
@example(point(token_len=38, channels=4384), point(token_len=384, channels=384))
def test_names_are_unique(one: Point, other: Point) -> None:
    """Two points share a name only if they are equal."""
    assert (one.name == other.name) == (one == other)


@given(points)
def test_names_are_safe_in_a_file_name(one: Point) -> None:
    """A point's name holds nothing that a file system or a shell takes for something else."""
    assert re.fullmatch(r"[A-Za-z0-9_.-]+", one.name)
