"""Sweep files of a model, and which points of the layer `core` its cores are."""

from pathlib import Path
from typing import Any

import pytest

from bench.analyse.advice import seen
from bench.plan.errors import WrongRequest
from bench.plan.grid import DEFAULTS, expand
from bench.plan.sweep import Sweep, load_sweep
from bench.show.model_sweep import core_columns, obstacle, of_cores, of_layers
from tests.make import advice
from tests.make.points import point


def core(q: list[int], k: list[int] | None = None, v: list[int] | None = None, **changes: Any) -> dict[str, Any]:
    """Return a core with these shapes; k and v have that of q unless they are given."""
    return advice.core("layer", shapes=[q, k or q, v or k or q], **changes)


def mask(kind: str, *shape: int, **more: Any) -> dict[str, Any]:
    """Return a mask as a look reports it."""
    return {"kind": kind, "dtype": "float32", "shape": [*shape], **more}


def padding(*lengths: int) -> list[dict[str, Any]]:
    """Return the masks of a core whose items have these lengths, of 7 keys at most."""
    return [mask("padding", len(lengths), 1, 1, 7, lengths=[*lengths])]


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (core([2, 3, 7, 4]), {"batch": 2, "num_heads": 3, "num_tokens": 7, "channels": 12}),
        (core([6, 7, 4]), {"batch": 6, "num_heads": 1, "num_tokens": 7, "channels": 4}),
        (core([7, 4]), {"batch": 1, "num_heads": 1, "num_tokens": 7, "channels": 4}),
        (core([2, 3, 1, 4], [2, 3, 9, 4]), {"num_tokens": 1, "num_kv_tokens": 9}),
        (core([2, 4, 7, 4], [2, 2, 7, 4]), {"num_heads": 4, "num_kv_heads": 2, "num_kv_tokens": None}),
        (core([2, 4, 7, 4], causal=True), {"mask": "causal", "attn_bias": "none"}),
        (core([2, 4, 7, 4], masks=[mask("causal", 7, 7)]), {"mask": "causal", "attn_bias": "none"}),
        (core([2, 4, 7, 4], masks=[mask("given", 1, 4, 7, 7)]), {"mask": "none", "attn_bias": "given"}),
        (core([2, 4, 7, 4], masks=[mask("given", 7, 7)]), {"attn_bias": "given"}),
        (
            core([2, 4, 7, 4], masks=[mask("given", 1, 4, 7, 7), mask("learned", 1, 1, 1, 7)]),
            {"attn_bias": "learned"},
        ),
        (core([2, 4, 7, 4], masks=padding(3, 7)), {"lengths": "list:7+3", "mask": "none"}),
        (core([2, 4, 7, 4], masks=padding(5)), {"lengths": "list:5+5", "mask": "none"}),
        (core([1, 4, 7, 4], masks=padding(5)), {"lengths": "list:5", "mask": "none"}),
        (core([2, 4, 7, 4], masks=padding(7, 7)), {"lengths": "list:7+7", "mask": "none"}),
        (core([2, 4, 7, 4], masks=padding(3, 7), causal=True), {"lengths": "list:7+3", "mask": "causal"}),
        (
            core([2, 4, 7, 4], masks=[mask("learned", 4, 7, 7), *padding(3, 7)]),
            {"lengths": "list:7+3", "mask": "none", "attn_bias": "learned"},
        ),
        (core([2, 4, 7, 4], dtype="bfloat16"), {"dtype": "bfloat16"}),
        (core([2, 4, 7, 4], obstacle="used", weights_are_used=True), {"num_heads": 4}),
        (
            advice.core("layer", shapes=[[2, 9, 24]], heads=8, operator="_native_multi_head_attention"),
            {"batch": 2, "num_heads": 8, "num_tokens": 9, "channels": 24},
        ),
    ],
)
def test_a_core_has_columns(of: dict[str, Any], expected: dict[str, Any]) -> None:
    """They are a point of the layer core, with the mode, the threads and the device of the model."""
    assert obstacle(of) == ""
    values = core_columns(of, point(mode="train", threads=2))
    (only,) = expand({**DEFAULTS, **values})
    assert {name: getattr(only, name) for name in expected} == expected
    assert (only.layer, only.mode, only.threads, only.device) == ("core", "train", 2, "cpu")


@pytest.mark.parametrize(
    ("of", "word"),
    [
        (core([2, 4, 3, 7, 4]), "5"),
        (core([2, 4, 7, 4], [2, 4, 7, 4], [2, 4, 7, 8]), "width"),
        (core([2, 4, 7, 4], [1, 4, 7, 4]), "same items"),
        (core([2, 4, 7, 4], [2, 3, 7, 4]), "groups of heads"),
        (core([2, 4, 7, 4], dtype="float64"), "float64"),
        (core([2, 4, 7, 4], dropout=0.1), "dropout"),
        (core([2, 4, 7, 4], obstacle="a soft cap"), "a soft cap"),
        (core([2, 4, 7, 4], sink=True), "a sink"),
        (core([2, 4, 7, 4], masks=[mask("other", 7, 7)]), "neither causal"),
        (core([2, 4, 7, 4], masks=[mask("padding", 7, 7, lengths=[])]), "no padding of the items"),
        (core([2, 4, 3, 4], [2, 4, 7, 4], masks=padding(3, 7)), "no padding of the items"),
        (core([2, 4, 7, 4], masks=[mask("given", 2, 4, 7, 7)]), "each item"),
        (core([8, 4, 7, 4], masks=[mask("given", 1, 4, 1, 7, 7)]), "each item"),
        (core([8, 7, 4], masks=[mask("given", 8, 7, 7)]), "each item"),
    ],
)
def test_what_the_layer_core_has_not_is_an_obstacle(of: dict[str, Any], word: str) -> None:
    """The reason names it."""
    assert word in obstacle(of)


def sweep_of(text: str, folder: Path) -> Sweep:
    """Return the sweep in a text, which loads as it stands."""
    (folder / "out.toml").write_text(text)
    return load_sweep(str(folder / "out.toml"))


def test_each_layer_has_columns_of_its_own(tmp_path: Path) -> None:
    """Those of its core: also of one whose shapes are those of tokens, because one operator computes the layer."""
    cores = [
        advice.core("stages.0.attn"),
        advice.core("stages.1.attn", shapes=[[2, 6, 5, 4]] * 3),
        advice.core("stages.2.attn", shapes=[[2, 9, 24]], operator="_native_multi_head_attention", heads=8),
    ]
    sweep = sweep_of(of_layers([seen(advice.POINT, advice.looks(cores=cores))]), tmp_path)
    assert sweep.implementations == ("as_is", "eager")
    assert [(at.layer, at.num_tokens, at.channels, at.num_heads) for at in sweep.points] == [
        (f"{advice.POINT.layer}[at=stages.{number}.attn]", *columns)
        for number, columns in enumerate([(7, 12, 3), (5, 24, 6), (9, 24, 8)])
    ]


def test_each_core_is_written_once(tmp_path: Path) -> None:
    """Comments name the layers that have it, and what the layer core can't express; without any core it is refused."""
    bias = {"shapes": [[8, 3, 7, 4]] * 3, "masks": [mask("given", 1, 3, 7, 7)], "mask": "float32 [1, 3, 7, 7]"}
    fewer = {"shapes": [[2, 4, 5, 8], [2, 2, 9, 8], [2, 2, 9, 8]], "causal": True}
    capped = advice.core("capped.0", obstacle="a soft cap")
    cores = [advice.core("encoder.0", **bias), advice.core("decoder.0", **fewer), advice.core("encoder.1", **bias)]
    text = of_cores([seen(advice.POINT, advice.looks(cores=[*cores, capped]))])
    first, second = sweep_of(text, tmp_path).points
    assert (first.layer, first.batch, first.attn_bias) == ("core", 8, "given")
    assert (second.num_tokens, second.num_kv_tokens, second.num_kv_heads, second.mask) == (5, 9, 2, "causal")
    _, both, one, left_out = (line for line in text.splitlines() if line.startswith("#"))
    assert "2 cores of encoder.0, encoder.1" in both
    assert "1 core of decoder.0" in one
    assert "left out: 1 core of capped.0: a soft cap" in left_out
    with pytest.raises(WrongRequest, match="a soft cap"):
        of_cores([seen(advice.POINT, advice.looks(cores=[capped]))])


def test_padded_cores_are_measured_packed_too(tmp_path: Path) -> None:
    """A sweep of a model with padding has the implementations that pack items, unless nothing is hidden."""
    packs = {"loop", "buckets", "varlen"}
    for masks, expected in ((padding(7, 3), packs), (padding(7, 7), set())):
        padded = advice.core("encoder.0", shapes=[[2, 3, 7, 4]] * 3, masks=masks, mask="bool [2, 1, 1, 7]")
        sweep = sweep_of(of_cores([seen(advice.POINT, advice.looks(cores=[padded]))]), tmp_path)
        assert packs & {*sweep.implementations} == expected
