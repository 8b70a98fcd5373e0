"""A look per implementation, colours that can be read on both grounds, and categories of operators."""

import numpy as np
import pytest

from bench.show import palette
from impls.catalogue import IMPLEMENTATIONS

Vector = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour: str) -> Vector:
    """Return linear RGB of `#rrggbb`."""
    values = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(*colours: str) -> float:
    """Return the contrast of two colours as WCAG defines it, which asks 4.5 of small text."""
    dark, light = sorted(float(TO_XYZ[1] @ linear(each)) for each in colours)
    return (light + 0.05) / (dark + 0.05)


def test_names_look_different_and_families_alike() -> None:
    """Marker and filling differ for all names of the catalogue; options change dash and marker, but not colour."""
    marks = [(palette.style(name).marker, palette.style(name).hollow) for name in IMPLEMENTATIONS]
    assert len(marks) == len(set(marks))
    plain, small, large = (
        palette.style(f"online{options}") for options in ("", "[block_tokens=32]", "[block_tokens=64]")
    )
    assert small.colour == plain.colour
    assert (small.dash, small.marker) != (plain.dash, plain.marker)
    assert small != large


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
    ("name", "shown"),
    [
        ("aten::addmm", "aten::addmm"),
        (
            f"void (anonymous namespace)::softmax_forward<{'c10::Half, ' * 9}>(c10::Half*)",
            "softmax_forward<…>",
        ),
        ("triton_poi_fused__softmax_" * 3, "triton_poi_fused__softmax_triton_poi_fused__softmax_triton_poi_…"),
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
