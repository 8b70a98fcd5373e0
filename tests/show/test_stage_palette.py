"""One colour per stage."""

import ast
import colorsys
import itertools
from pathlib import Path

import numpy as np
import pytest

from bench.show.stage_palette import OTHER_COLOURS, QUADRATIC, RESIDUAL_COLOUR, STAGE_COLOURS, stage_colour
from tests.show.test_palette import APART, SIGHT, lab

STEPWISE = Path(__file__).parents[2] / "impls/whole/stepwise.py"


def test_every_stage_of_stepwise_has_a_colour() -> None:
    """The names are those that `stepwise` writes into profiles, no more and no fewer."""
    calls = (node for node in ast.walk(ast.parse(STEPWISE.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
    named = {ast.literal_eval(call.args[0]) for call in calls if ast.unparse(call.func) == "record_function"}
    assert named == set(STAGE_COLOURS)


@pytest.mark.parametrize("sight", SIGHT)
def test_stages_are_told_apart_by_all(sight: str) -> None:
    """Any two stages, and what is left, differ clearly in colour, without red or green cones too."""
    seen = {name: lab(colour, SIGHT[sight]) for name, colour in STAGE_COLOURS.items()}
    seen["residual"] = lab(RESIDUAL_COLOUR, SIGHT[sight])
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
    assert not {*OTHER_COLOURS} & {*STAGE_COLOURS.values()}
