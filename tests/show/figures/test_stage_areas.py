"""The picture of the shares of stages against tokens."""

import dataclasses
import functools
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.text import Text

from bench.analyse.scaling.stage_growth import StageGrowth, stage_growths
from bench.show.figures.stage_areas import figure, name, stacked
from bench.show.palette import QUADRATIC
from bench.store.profile import Profile
from tests.profiles import STEPS, stepwise
from tests.show.figures.legible import assert_legible, drawn

TOKENS = (50, 197, 577, 1024, 4096)
EQUAL = 197
"""The tokens at which stages take what they take in STEPS."""


def growing(num_tokens: int, **changes: Any) -> Profile:
    """Return a profile whose stages take a time linear or quadratic in the tokens."""
    made = stepwise(num_tokens=num_tokens, **changes)
    powers = {stage.name: 2 if stage.name in QUADRATIC else 1 for stage in made.stages}
    stages = [
        dataclasses.replace(stage, time_s=stage.time_s * (num_tokens / EQUAL) ** powers[stage.name])
        for stage in made.stages
    ]
    return dataclasses.replace(made, stages=tuple(stages))


@functools.cache
def series(mode: str = "inference", tokens: tuple[int, ...] = TOKENS) -> StageGrowth:
    """Return a series of a mode."""
    (found,) = stage_growths([growing(number, mode=mode) for number in tokens])
    return found


@functools.cache
def sheet(mode: str = "inference", tokens: tuple[int, ...] = TOKENS) -> Figure:
    """Return its picture."""
    return figure(series(mode, tokens))


def height(made: Figure, stage: str, place: int) -> float:
    """Return how tall the area of a stage is at a place."""
    (area,) = [each for each in made.axes[0].collections if each.get_gid() == f"area {stage}"]
    assert isinstance(area, PolyCollection)
    points = np.concatenate([path.vertices for path in area.get_paths()])
    there = points[np.isclose(points[:, 0], place), 1]
    return float(there.max() - there.min())


@pytest.mark.parametrize("mode", ["inference", "train"])
def test_areas_are_as_tall_as_shares_and_fill_the_whole(mode: str) -> None:
    """At every place, forward and backward together."""
    made = sheet(mode)
    whole_s = sum(time_s for _, time_s, _ in STEPS.values())
    for stage, (_, time_s, _) in STEPS.items():
        assert height(made, stage, EQUAL) == pytest.approx(time_s / whole_s)
    for place in TOKENS:
        assert sum(height(made, stage, place) for stage in STEPS) == pytest.approx(1)


def test_the_quadratic_stages_lie_together_at_the_bottom_with_their_sum_written_at_each_place() -> None:
    """The black line runs along their upper edge, and grows."""
    made = sheet()
    quadratic = [stage for stage in QUADRATIC if stage in series().stages]
    assert set(stacked(series())[: len(quadratic)]) == set(quadratic)
    (line,) = [each for each in made.axes[0].lines if each.get_gid() == "quadratic"]
    sums = [sum(height(made, stage, place) for stage in quadratic) for place in TOKENS]
    assert list(np.asarray(line.get_ydata())) == pytest.approx(sums)
    assert sums == sorted(sums)
    shares = drawn(made, "share", Text)
    assert [shares[f"{place}"].get_text() for place in TOKENS] == [f"{100 * share:.0f}%" for share in sums]


def test_every_stage_is_named_beside_its_area_with_its_last_share() -> None:
    """A label for each, in the order of the areas."""
    labels = drawn(sheet(), "label", Text)
    assert set(labels) == set(STEPS)
    ups = [labels[stage].get_position()[1] for stage in stacked(series())]
    assert ups == sorted(ups)


@pytest.mark.slow
@pytest.mark.parametrize("tokens", [TOKENS, (197, 577), (190, 197, 205, 577), (1024, 16384)])
@pytest.mark.parametrize("mode", ["inference", "train"])
def test_all_words_are_on_the_page_and_none_overlap(mode: str, tokens: tuple[int, ...]) -> None:
    """Also where places are near each other, and where next to all is quadratic."""
    made = sheet(mode, tokens)
    assert_legible(made)


def test_the_name_says_what_is_fixed_and_whose_stages_they_are() -> None:
    """Whatever else was profiled, and safe in a file system."""
    assert name(series()) == "shares-tokens-vit-cpu-float32-inference-b8-c384-h6-t1-stepwise"
    own = [
        dataclasses.replace(each, case=dataclasses.replace(each.case, implementation="mine:adapt"))
        for each in series().profiles
    ]
    (found,) = stage_growths(own)
    assert name(found).endswith("-mine.adapt")
