"""One look per implementation, colours that can be read on both grounds and told apart, and categories of operators."""

import itertools

import numpy as np
import pytest

from bench.plan.sweep import Request, load_sweep
from bench.show import palette
from impls.catalogue import IMPLEMENTATIONS

Vector = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

SIGHT = {
    "usual": np.eye(3),
    "no red cones": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "no green cones": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
}
"""How linear RGB is seen, after Machado, Oliveira and Fernandes (2009)."""

OF_A_MODULE = load_sweep(Request("quick", overrides={"layer": "package.module:Layer"})).implementations

TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = TO_XYZ.sum(axis=1)

LEAST_DISTANCE = 15
"""A distance in CIELAB; 2 is just noticeable side by side."""


def linear(colour: str) -> Vector:
    """Return linear RGB of `#rrggbb`."""
    values = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(colour: str, sight: Vector) -> Vector:
    """Return CIELAB coordinates of a colour as it is seen."""
    xyz = TO_XYZ @ np.clip(sight @ linear(colour), 0, 1) / WHITE
    root = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def contrast(*colours: str) -> float:
    """Return the contrast of two colours as WCAG defines it, which asks 4.5 of small text."""
    dark, light = sorted(float(TO_XYZ[1] @ linear(each)) for each in colours)
    return (light + 0.05) / (dark + 0.05)


def test_names_look_different_and_families_alike() -> None:
    """Marker and filling tell all names of the catalogue apart; options change dash and marker, but no colour."""
    marks = [(palette.style(name).marker, palette.style(name).hollow) for name in IMPLEMENTATIONS]
    assert len(marks) == len(set(marks))
    plain, small, large = (
        palette.style(f"online{options}") for options in ("", "[block_tokens=32]", "[block_tokens=64]")
    )
    assert small.colour == plain.colour
    assert (small.dash, small.marker) != (plain.dash, plain.marker)
    assert small != large


def test_an_unknown_name_looks_the_same_for_ever() -> None:
    """The look of a name follows from its name alone, in every process; a compiled one is a tint of its source."""
    own, compiled = palette.style("mine:kernel"), palette.style("compiled_mine:kernel")
    assert (own.colour, own.marker) == ("#cc6677", "8")
    assert compiled.colour == palette.mix(own.colour, "#ffffff", palette.TINT)
    assert (compiled.marker, compiled.hollow) == (own.marker, True)
    assert len({palette.style(f"mine:kernel{number}") for number in range(20)}) >= 15


def test_words_and_lines_can_be_read_on_both_grounds() -> None:
    """Words in a colour on white, lines on white, and both on a dark page; black on every stage and operator."""
    for name in (*IMPLEMENTATIONS, "compiled_online", "compiled_flex"):
        colour = palette.style(name).colour
        assert contrast(palette.ink(colour), "#ffffff") >= 4.5, name
        assert contrast(colour, "#ffffff") >= 1.6, name
        if not palette.on_both(colour).startswith("var"):
            assert contrast(palette.on_both(colour).removesuffix(")").split(",")[-1], palette.DARK) >= 4.5, name
    for colour in (*palette.CATEGORY_COLOURS.values(), palette.RESIDUAL_COLOUR):
        assert contrast(colour, "#000000") >= 4.5
        assert palette.on_both(colour) == colour


@pytest.mark.parametrize(
    "colours",
    [
        {name: palette.style(name).colour for name in load_sweep("quick").implementations},
        {name: palette.style(name).colour for name in OF_A_MODULE},
        {**palette.CATEGORY_COLOURS, "residual": palette.RESIDUAL_COLOUR},
    ],
    ids=["the default sweep", "the default sweep of a module", "categories"],
)
@pytest.mark.parametrize("sight", SIGHT)
def test_colours_look_different_to_all(sight: str, colours: dict[str, str]) -> None:
    """Any two differ clearly, without red or green cones too; marker and filling tell further implementations apart."""
    seen = {name: lab(colour, SIGHT[sight]) for name, colour in colours.items()}
    nearest = min(itertools.combinations(seen, 2), key=lambda pair: np.linalg.norm(seen[pair[0]] - seen[pair[1]]))
    assert np.linalg.norm(seen[nearest[0]] - seen[nearest[1]]) > LEAST_DISTANCE, nearest


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        ("blocks.*.attn.qkv", palette.PRODUCT),
        ("softmax of no core in gate, layer.py:7", palette.SOFTMAX),
        ("attention core of Mine, layer.py:9", palette.BATCHED),
        ("blocks.*.mlp", palette.OTHER),
    ],
)
def test_a_stage_has_the_colour_of_what_it_does(stage: str, expected: str) -> None:
    """That of a module is known by its name, if at all."""
    assert palette.stage_colour(stage) == palette.CATEGORY_COLOURS[expected]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("aten::addmm", "aten::addmm"),
        (
            f"void (anonymous namespace)::softmax_forward<{'c10::Half, ' * 9}>(c10::Half*)",
            "softmax_forward<…>",
        ),
        (
            "autograd::engine::evaluate_function: ScaledDotProductFlashAttentionForCpuBackward0",
            "autograd: ScaledDotProductFlashAttentionForCpuBackward0",
        ),
        ("triton_poi_fused__softmax_" * 3, "triton_poi_fused__softmax_triton_poi_fused__softmax_triton_poi_…"),
        ("<script>" * 20, f"{'<script>' * 7}<script…"),
        ("void " * 20, f"{'void ' * 12}voi…"),
    ],
)
def test_a_name_says_what_ran(name: str, shown: str) -> None:
    """A short name stays, of a template its own name is left, and another long name is cut, never to nothing."""
    assert palette.short_name(name) == shown


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aten::addmm", "matrix product"),
        ("aten::bmm", "batched product"),
        ("ampere_sgemm_128x64_tn", "matrix product"),
        ("aten::_scaled_dot_product_flash_attention_for_cpu", "several steps in one kernel"),
        ("Memcpy DtoD (Device -> Device)", "copy or new memory"),
        ("aten::add", "element by element"),
        ("void (anonymous namespace)::softmax_warp_forward<c10::Half, at::Common, 8, false>(c10::Half*)", "softmax"),
        ("", "other"),
    ],
)
def test_a_name_tells_what_an_operator_does(name: str, expected: str) -> None:
    """Products, softmax, copies and arithmetic are told apart by the names that torch and CUDA give them."""
    assert palette.category(name) == expected
