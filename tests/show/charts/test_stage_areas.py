"""The picture of the shares of stages against tokens, by its data."""

import dataclasses
import functools
import itertools
from typing import Any

import pytest

from bench.analyse.growth import StageGrowth, stage_growths
from bench.show.charts.stage_areas import HEIGHT_PX, LABEL_PX, areas, labels, name, quadratic, sheet, stacked
from bench.show.palette import QUADRATIC
from bench.store.profile import Profile
from tests.profiles import STEPS, stepwise

TOKENS = (50, 197, 577, 1024, 4096)
EQUAL = 197
"""The tokens at which stages take what they take in STEPS."""


def growing(num_tokens: int, **changes: Any) -> Profile:
    """Return a profile whose stages take a time linear or quadratic in the tokens."""
    base = stepwise(num_tokens=num_tokens, **changes)
    powers = {stage.name: 2 if stage.name in QUADRATIC else 1 for stage in base.stages}
    stages = [
        dataclasses.replace(stage, time_s=stage.time_s * (num_tokens / EQUAL) ** powers[stage.name])
        for stage in base.stages
    ]
    return dataclasses.replace(base, stages=tuple(stages))


@functools.cache
def series(mode: str = "inference", tokens: tuple[int, ...] = TOKENS) -> StageGrowth:
    """Return a series of a mode."""
    (growth,) = stage_growths([growing(number, mode=mode) for number in tokens])
    return growth


def height(stage: str, place: int, mode: str = "inference") -> float:
    """Return how tall the area of a stage is at a place."""
    (row,) = [row for row in areas(series(mode)) if (row["stage"], row["tokens"]) == (stage, place)]
    return float(row["top"] - row["bottom"])


@pytest.mark.parametrize("mode", ["inference", "train"])
def test_areas_are_as_tall_as_shares_and_fill_the_whole(mode: str) -> None:
    """At every place, forward and backward together."""
    whole_s = sum(time_s for _, time_s, _ in STEPS.values())
    for stage, (_, time_s, _) in STEPS.items():
        assert height(stage, EQUAL, mode) == pytest.approx(time_s / whole_s)
    for place in TOKENS:
        assert sum(height(stage, place, mode) for stage in STEPS) == pytest.approx(1)


def test_the_quadratic_stages_lie_together_at_the_bottom_with_their_sum_written_at_each_place() -> None:
    """The black line runs along their upper edge, and grows."""
    own = [stage for stage in QUADRATIC if stage in series().stages]
    assert set(stacked(series())[: len(own)]) == set(own)
    line = quadratic(series())
    sums = [sum(height(stage, place) for stage in own) for place in TOKENS]
    assert [each["share"] for each in line] == pytest.approx(sums)
    assert sums == sorted(sums)
    assert [each["text"] for each in line] == [f"{100 * share:.0f}%" for share in sums]


def test_shares_of_places_that_are_near_each_other_are_written_where_there_is_room() -> None:
    """The ends always have theirs."""
    texts = [bool(each["text"]) for each in quadratic(series(tokens=(190, 197, 205, 577)))]
    assert (texts[0], texts[-1], all(texts)) == (True, True, False)


@pytest.mark.parametrize("tokens", [TOKENS, (1024, 16384)])
def test_every_stage_is_named_beside_its_area_with_its_last_share(tokens: tuple[int, ...]) -> None:
    """In the order of the areas, at a distance of a line's height, also where next to all is quadratic."""
    names = labels(series(tokens=tokens))
    assert [each["text"].rpartition(" ")[0] for each in names] == stacked(series(tokens=tokens))
    ups = [each["place"] * HEIGHT_PX for each in names]
    assert all(b - a > LABEL_PX - 1e-6 for a, b in itertools.pairwise(ups))
    assert 0 < ups[0] < ups[-1] < HEIGHT_PX


def test_the_footnotes_say_what_the_line_is_and_what_is_added() -> None:
    """Forward and backward are one area in training."""
    assert "whose work grows with N²" in sheet(series()).notes[0]
    assert "forward and backward together" in sheet(series("train")).notes
    assert "forward and backward together" not in sheet(series()).notes


def test_the_name_says_what_is_fixed_and_whose_stages_they_are() -> None:
    """Whatever else was profiled, and safe in a file system."""
    assert name(series()) == "shares-tokens-vit-cpu-float32-inference-b8-c384-h6-t1-stepwise"
    own = [
        dataclasses.replace(each, case=dataclasses.replace(each.case, implementation="mine:adapt"))
        for each in series().profiles
    ]
    (growth,) = stage_growths(own)
    assert name(growth).endswith("-mine.adapt")
