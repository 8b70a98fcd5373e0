"""One look per implementation."""

import ast
import colorsys
import itertools
from pathlib import Path

import numpy as np
import pytest

from bench.plan.names import IMPLEMENTATIONS
from bench.plan.sweep import load_sweep
from bench.show.palette import (
    OTHER_STAGE_COLOURS,
    QUADRATIC,
    RESIDUAL_COLOUR,
    STAGE_COLOURS,
    TINT,
    ink,
    mix,
    on,
    stage_colour,
    style,
)
from impls.catalogue import Style

Vector = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

STEPWISE = Path(__file__).parents[2] / "impls/whole/stepwise.py"

SIGHT = {
    "usual": np.eye(3),
    "no red cones": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "no green cones": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
}
"""How linear RGB is seen, after Machado, Oliveira and Fernandes (2009)."""

TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = TO_XYZ.sum(axis=1)

APART = 15
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


def test_no_two_known_names_look_alike_without_colour() -> None:
    """Marker and its filling alone tell all known names apart."""
    marks = [(style(name).marker, style(name).hollow) for name in IMPLEMENTATIONS]
    assert len(marks) == len(set(marks))


def test_options_change_dash_and_marker_alone() -> None:
    """An implementation with options has the colour of the one without, so that they read as one family."""
    plain, small = style("online"), style("online[block_tokens=32]")

    assert small.colour == plain.colour
    assert (small.dash, small.marker) != (plain.dash, plain.marker)
    assert small != style("online[block_tokens=64]")


@pytest.mark.parametrize("source", ["manual", "sdpa", "flex", "mine:kernel"])
def test_a_compiled_variant_has_a_tint_of_its_source(source: str) -> None:
    """Compiled is a lighter tint with the same marker, hollow and dashed."""
    own, compiled = style(source), style(f"compiled_{source}")
    assert compiled.colour == mix(own.colour, "#ffffff", TINT)
    assert (compiled.marker, compiled.hollow) == (own.marker, True)
    assert compiled.dash


def test_an_unknown_name_looks_the_same_for_ever() -> None:
    """The look of a user's own kernel follows from its name alone, in every process; twenty share few looks."""
    assert style("mine:kernel") == Style("#cc6677", (4, 1.6), "8")
    assert len({style(f"mine:kernel{number}") for number in range(20)}) >= 15


@pytest.mark.parametrize("name", [*IMPLEMENTATIONS, "compiled_online", "compiled_flex"])
def test_words_in_a_colour_can_be_read_on_white(name: str) -> None:
    """A label's contrast with white is at least 4.5, as WCAG asks of small text."""
    luminance = float(TO_XYZ[1] @ linear(ink(style(name).colour)))
    assert 1.05 / (luminance + 0.05) >= 4.5


@pytest.mark.parametrize(
    "colour", [*STAGE_COLOURS.values(), "#000000", "#ffffff", "#777777", "#808080", "#4a84df", "#ffff00"]
)
def test_words_can_be_read_on_a_colour(colour: str) -> None:
    """The contrast of black or white words with what they stand on is at least 4.5."""
    dark, light = sorted(float(TO_XYZ[1] @ linear(each)) for each in (colour, on(colour)))
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_every_stage_of_stepwise_has_a_colour() -> None:
    """The names are those that `stepwise` writes into profiles, no more and no fewer."""
    calls = (node for node in ast.walk(ast.parse(STEPWISE.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
    named = {ast.literal_eval(call.args[0]) for call in calls if ast.unparse(call.func) == "record_function"}
    assert named == set(STAGE_COLOURS)


@pytest.mark.parametrize(
    "colours",
    [
        {name: style(name).colour for name in load_sweep("quick").implementations},
        {**STAGE_COLOURS, "residual": RESIDUAL_COLOUR},
    ],
    ids=["the default sweep", "stages"],
)
@pytest.mark.parametrize("sight", SIGHT)
def test_colours_are_told_apart_by_all(sight: str, colours: dict[str, str]) -> None:
    """Any two implementations of the default sweep, or stages, differ clearly, without red or green cones too.

    With more implementations than eyes can tell colours, marker and filling tell the rest.
    """
    seen = {name: lab(colour, SIGHT[sight]) for name, colour in colours.items()}
    nearest = min(itertools.combinations(seen, 2), key=lambda pair: np.linalg.norm(seen[pair[0]] - seen[pair[1]]))
    assert np.linalg.norm(seen[nearest[0]] - seen[nearest[1]]) > APART, nearest


def test_the_quadratic_part_is_one_family_of_hues() -> None:
    """The stages of N² are orange, and no other stage is near."""
    hues = {
        name: colorsys.rgb_to_hsv(*(int(colour[i : i + 2], 16) for i in (1, 3, 5)))[0] * 360
        for name, colour in STAGE_COLOURS.items()
    }
    quadratic = [hues.pop(name) for name in QUADRATIC]
    assert max(quadratic) - min(quadratic) < 30
    assert min(hues.values()) - max(quadratic) > 60


def test_an_unknown_stage_looks_the_same_for_ever() -> None:
    """The colour of a stage that a user named follows from its name alone, and is none of ours."""
    assert stage_colour("rotary embedding") == "#664488"
    assert not {*OTHER_STAGE_COLOURS} & {*STAGE_COLOURS.values()}
