"""Points and cases: their names, and their columns."""

import re
from typing import Any

import pandas as pd
import pytest
from hypothesis import example, given, settings

from bench.plan.case import CASE_COLUMNS, COLUMNS, Case, Point
from tests.make.points import VIT_S, vit_s
from tests.make.strategies import cases, points


@given(cases)
def test_columns_hold_the_whole_case(case: Case) -> None:
    """A case can be read back from its columns, which stand in the order of the contract."""
    columns = case.columns()

    assert tuple(columns) == CASE_COLUMNS
    assert Case.from_columns(columns) == case


def test_a_case_is_read_from_a_row() -> None:
    """Other columns are passed over, missing values of pandas are None; a missing column is a KeyError."""
    case = Case(vit_s(), "sdpa")
    row = {"latency_s": 0.5, **case.columns(), "qk_scale": float("nan"), "patch_size": pd.NA, "status": "ok"}
    assert Case.from_columns(row) == case
    for name in ("layer", "implementation", "num_heads"):
        with pytest.raises(KeyError, match=name):
            Case.from_columns({key: value for key, value in row.items() if key != name})


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "vit-cpu-float32-inference-b8-n197-c384-h6-t1"),
        (
            {"layer": "attention", "num_kv_tokens": 77, "context_dim": 768, "num_kv_heads": 2, "qk_norm": "rms"},
            "attention-cpu-float32-inference-b8-n197-c384-h6-m77-x768-g2-rmsnorm-t1",
        ),
        ({"layer": "mylayer:MyAttention"}, "mylayer.MyAttention-cpu-float32-inference-b8-n197-c384-h6-t1"),
        ({"device": "cuda:1", "timing": "device-hot"}, "vit-cuda1-float32-inference-b8-n197-c384-h6-t1-device-hot"),
    ],
)
def test_name_of_a_point(changes: dict[str, Any], name: str) -> None:
    """A point's name has its unusual values in one word; a case's name also has the implementation."""
    assert vit_s(**changes).name == name
    assert Case(vit_s(**changes), "sdpa").name == f"{name}-sdpa"


def test_a_long_name_of_a_model_fits_into_a_file_name() -> None:
    """And two that differ at their end still differ."""
    options = "".join(f"hidden_size_{number}=64," for number in range(20))
    layers = [f"transformers:BertConfig[{options}at=layer.{number}]" for number in range(2)]
    names = {Case(vit_s(layer=layer), "compiled_sdpa").name for layer in layers}
    assert len(names) == 2
    assert all(len(name) < 220 for name in names)


def test_every_column_is_part_of_the_identity() -> None:
    """Points that differ in one column are different, and so are their names."""
    others: dict[str, object] = {"layer": "conv", "device": "cuda:0", "qkv_bias": True, "qk_scale": 0.3}
    others |= {"lengths": "zipf"}
    changed = [vit_s()]
    for name, value in VIT_S.items():
        choice = next((each for each in COLUMNS[name].choices if each != value), 13)
        changed.append(vit_s(**{name: others.get(name, choice)}))
    assert len({*changed}) == len({each.name for each in changed}) == len(changed)


@settings(deadline=None)
@given(points, points)
@example(vit_s(device="cuda"), vit_s(device="cuda:0"))
@example(vit_s(token_len=38, channels=4384), vit_s(token_len=384, channels=384))
def test_names_are_unique(one: Point, other: Point) -> None:
    """Two points share a name only if they are equal."""
    assert (one.name == other.name) == (one == other)


@given(points)
def test_names_are_safe_in_a_file_name(one: Point) -> None:
    """A point's name holds no character with a meaning in a file system or a shell."""
    assert re.fullmatch(r"[A-Za-z0-9_.-]+", one.name)
