"""The pictures of where the time of calls goes, by their data."""

import dataclasses
import functools
import itertools
from typing import Any

import pytest

from bench.analyse.growth import StageGrowth, stage_growths
from bench.show.charts import stages as pictures
from bench.show.charts.base import SMALL_PX, text_px
from bench.show.palette import CATEGORY_COLOURS, OTHER, QUADRATIC, stage_colour
from bench.store.profile import Operator, Profile
from tests.profiles import STEPS, profile, stepwise

EAGER = tuple(
    Operator(name, 1, time_s, 0)
    for name, time_s in {"aten::mm": 4e-3, "aten::bmm": 4e-3, "aten::_softmax": 2e-3, "aten::copy_": 2e-4}.items()
) + tuple(Operator(f"aten::view{number}", 1, 1e-6, 0) for number in range(9))
LONG = tuple(Operator(f"graph_0_cpp_fused_mul_view_transpose_softmax_{number}", 1, 1e-3, 0) for number in range(6))


TOKENS = (50, 197, 577, 1024, 4096)
EQUAL = 197
"""The tokens at which stages take what they take in STEPS."""


def of_point(mode: str) -> list[Profile]:
    """Return profiles of one point, one of them with a long name and longer names of kernels."""
    own = "my_package.attention.kernels:the_one_with_a_long_name"
    return [
        stepwise(mode=mode, residual_s=-0.5e-3),
        profile("eager", operators=EAGER, mode=mode),
        profile(own, operators=LONG, mode=mode),
        profile("sdpa", mode=mode),
    ]


def drawn(profiles: list[Profile], kind: str, implementation: str = "") -> list[dict[str, Any]]:
    """Return what is drawn of profiles, of one implementation if it is named."""
    rows, _ = pictures.segments(pictures.bars(profiles))
    return [row for row in rows if row["kind"] == kind and implementation in ("", row["implementation"])]


def test_segments_are_as_wide_as_their_stages_took_and_the_whole_is_marked() -> None:
    """From 0 on, in the colours of the stages, the backward pass last; a mark at the latency, and the residual."""
    own = drawn(of_point("inference"), "segment", "stepwise")
    assert own[0]["start"] == 0
    for row, (stage, (_, time_s, _)) in zip(own, STEPS.items(), strict=True):
        assert (row["name"], row["fill"]) == (stage, stage_colour(stage))
        assert row["end"] - row["start"] == pytest.approx(time_s)
    train = drawn(of_point("train"), "segment", "stepwise")
    assert all(one["end"] == other["start"] for one, other in itertools.pairwise(train))
    assert [row["backward"] for row in train] == [False] * len(STEPS) + [True] * len(STEPS)
    assert [row["name"] for row in train[len(STEPS) :]] == [f"{stage}, backward" for stage in STEPS]
    assert [row["fill"] for row in train[len(STEPS) :]] == [row["fill"] for row in train[: len(STEPS)]]
    profiles = of_point("inference")
    for each in profiles:
        (mark,) = drawn(profiles, "whole", each.case.implementation)
        assert mark["start"] == each.timed_s
    assert drawn(profiles, "whole", "stepwise")[0]["residual"] == "residual -500 µs (-5.1%)"
    assert drawn(profiles, "residual", "stepwise") == []
    (gap,) = drawn([stepwise(residual_s=0.5e-3)], "residual")
    assert gap["end"] - gap["start"] == pytest.approx(0.5e-3)


@pytest.mark.parametrize("mode", ["inference", "train"])
def test_every_segment_is_named_with_its_time_in_it_or_below(mode: str) -> None:
    """However long a name is, no two names touch, and none is wider than its segment or beyond the axes."""
    profiles = of_point(mode)
    rows, height = pictures.segments(pictures.bars(profiles))
    scale = pictures.WIDTH_PX / max(row["end"] for row in rows if "end" in row)
    inside = [row for row in rows if row["kind"] == "segment" and row["text"]]
    below = [row for row in rows if row["kind"] == "name"]
    assert len(inside) + len(below) == sum(len(bar.segments) for bar in pictures.bars(profiles))
    for row in inside:
        assert max(text_px(word, SMALL_PX) for word in row["text"]) < (row["end"] - row["start"]) * scale
    lines = itertools.groupby(below, lambda row: row["top"])
    for top, line in lines:
        ends = [(row["start"] * scale, row["start"] * scale + text_px(row["text"], SMALL_PX)) for row in line]
        assert all(one[1] < other[0] for one, other in itertools.pairwise(ends))
        assert ends[-1][1] < pictures.WIDTH_PX
        assert top < height
    assert {"copy_ 200 µs", "9 other 9.00 µs"} <= {row["text"] for row in below}


def bar_of(*operators: Operator) -> pictures.Bar:
    """Return the bar of a profile with these operators."""
    (bar,) = pictures.bars([profile(operators=operators)])
    return bar


def test_a_few_operators_are_named_and_the_rest_are_one() -> None:
    """Segments make the time of all operators, in the order of their work; what takes next to nothing is not named."""
    bar = bar_of(*(Operator(f"aten::op{number}", 1, 1e-3 * (number + 1), 0) for number in range(10)))
    assert [each.name for each in bar.segments] == [
        *(f"op{9 - number}" for number in range(pictures.MOST_NAMED)),
        "4 other",
    ]
    assert bar.sum_s == pytest.approx(55e-3)
    assert bar.segments[-1].colour == CATEGORY_COLOURS[OTHER]
    bar = bar_of(Operator("aten::mm", 1, 1.0, 0), Operator("aten::view", 1, 1e-6, 0))
    assert [each.name for each in bar.segments] == ["mm", "1 other"]
    bar = bar_of(*(Operator(name, 1, 1e-3, 0) for name in ("aten::add", "aten::_softmax", "aten::bmm", "aten::mm")))
    assert [each.name for each in bar.segments] == ["mm", "bmm", "_softmax", "add"]
    assert bar_of(Operator("aten::mm", 1, 5e-6, 0, device_s=2e-3)).sum_s == 2e-3


def test_stages_come_first_and_then_the_slowest() -> None:
    """However the profiles came; the name of the picture says what is fixed, whatever was profiled there."""
    times = {"sdpa": 1.0, "eager": 3.0, "compiled_eager": 2.0}
    profiles = [dataclasses.replace(profile(name), timed_s=time_s) for name, time_s in times.items()]
    ordered = [bar.implementation for bar in pictures.bars([*profiles, stepwise()])]
    assert ordered == ["stepwise", "eager", "compiled_eager", "sdpa"]
    for each in (stepwise(), profile()):
        assert [name for name, _ in pictures.sheets([each])] == ["stages-vit-cpu-float32-inference-b8-n197-c384-h6-t1"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aten::bmm", "bmm"),
        ("aten::_scaled_dot_product_flash_attention_for_cpu", "flash_attention_for_cpu"),
        ("x" * pictures.LONGEST, "x" * pictures.LONGEST),
        ("x" * (pictures.LONGEST + 1), "x" * (pictures.LONGEST - 1) + "…"),
    ],
)
def test_names_are_as_short_as_they_can_be(name: str, expected: str) -> None:
    """What goes without saying is left out, and what is long is cut."""
    assert pictures.short(name) == expected


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
    (row,) = [row for row in pictures.areas(series(mode)) if (row["stage"], row["tokens"]) == (stage, place)]
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
    """The black line runs along their upper edge, and grows; where places are near, the ends have their text."""
    own = [stage for stage in QUADRATIC if stage in series().stages]
    assert set(pictures.stacked(series())[: len(own)]) == set(own)
    line = pictures.quadratic(series())
    sums = [sum(height(stage, place) for stage in own) for place in TOKENS]
    assert [each["share"] for each in line] == pytest.approx(sums)
    assert sums == sorted(sums)
    assert [each["text"] for each in line] == [f"{100 * share:.0f}%" for share in sums]
    texts = [bool(each["text"]) for each in pictures.quadratic(series(tokens=(190, 197, 205, 577)))]
    assert (texts[0], texts[-1], all(texts)) == (True, True, False)


@pytest.mark.parametrize("tokens", [TOKENS, (1024, 16384)])
def test_every_stage_is_named_beside_its_area_with_its_last_share(tokens: tuple[int, ...]) -> None:
    """In the order of the areas, at a distance of a line's height, also where next to all is quadratic."""
    names = pictures.stage_labels(series(tokens=tokens))
    assert [each["text"].rpartition(" ")[0] for each in names] == pictures.stacked(series(tokens=tokens))
    ups = [each["place"] * pictures.HEIGHT_PX for each in names]
    assert all(b - a > pictures.LABEL_PX - 1e-6 for a, b in itertools.pairwise(ups))
    assert 0 < ups[0] < ups[-1] < pictures.HEIGHT_PX


def test_footnotes_and_the_name_say_what_is_drawn() -> None:
    """Training has forward and backward in one area; the name doesn't depend on what else was profiled."""
    assert "whose work grows with N²" in pictures.share_sheet(series()).notes[0]
    assert "forward and backward together" in pictures.share_sheet(series("train")).notes
    assert "forward and backward together" not in pictures.share_sheet(series()).notes
    assert pictures.share_name(series()) == "shares-tokens-vit-cpu-float32-inference-b8-c384-h6-t1-stepwise"
    own = [
        dataclasses.replace(each, case=dataclasses.replace(each.case, implementation="mine:adapt"))
        for each in series().profiles
    ]
    (growth,) = stage_growths(own)
    assert pictures.share_name(growth).endswith("-mine.adapt")
