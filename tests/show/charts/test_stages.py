"""The pictures of where the time of calls goes, by their data."""

import dataclasses
import itertools
from typing import Any

import pytest

from bench.show.charts import stages as pictures
from bench.show.figures.page import text_width
from bench.show.palette import CATEGORY_COLOURS, OTHER, stage_colour
from bench.store.profile import Profile, ProfiledOperator
from tests.make.profiles import STEPS, profile, stepwise

EAGER = tuple(
    ProfiledOperator(name, 1, time_s, 0)
    for name, time_s in {"aten::mm": 4e-3, "aten::bmm": 4e-3, "aten::_softmax": 2e-3, "aten::copy_": 2e-4}.items()
) + tuple(ProfiledOperator(f"aten::view{number}", 1, 1e-6, 0) for number in range(9))
LONG = tuple(
    ProfiledOperator(f"graph_0_cpp_fused_mul_view_transpose_softmax_{number}", 1, 1e-3, 0) for number in range(6)
)


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
    assert ["upper" in row for row in train] == [False] * len(STEPS) + [True] * len(STEPS)
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
    scale = pictures.WIDTH / max(row["end"] for row in rows if "end" in row)
    inside = [row for row in rows if row["kind"] == "segment" and row["text"]]
    below = [row for row in rows if row["kind"] == "name"]
    assert len(inside) + len(below) == sum(len(bar.segments) for bar in pictures.bars(profiles))
    for row in inside:
        assert max(text_width(word, pictures.SMALL_SIZE) for word in row["text"]) < (row["end"] - row["start"]) * scale
    lines = itertools.groupby(below, lambda row: row["top"])
    for top, line in lines:
        ends = [
            (row["start"] * scale, row["start"] * scale + text_width(row["text"], pictures.SMALL_SIZE)) for row in line
        ]
        assert all(one[1] < other[0] for one, other in itertools.pairwise(ends))
        assert ends[-1][1] < pictures.WIDTH
        assert top < height
    assert {"copy_ 200 µs", "9 other 9.00 µs"} <= {row["text"] for row in below}


def test_no_name_stands_under_the_mark_of_the_whole() -> None:
    """It goes below the bar then."""
    operators = tuple(ProfiledOperator(f"aten::{name}", 1, 1e-3, 0) for name in ("mm", "bmm"))
    for timed_s, named in ((1.5e-3, ["mm"]), (2e-3, ["mm", "bmm"])):
        rows, _ = pictures.segments(pictures.bars([dataclasses.replace(profile(operators=operators), timed_s=timed_s)]))
        assert [row["name"] for row in rows if row["kind"] == "segment" and row["text"]] == named


def bar_of(*operators: ProfiledOperator) -> pictures.Bar:
    """Return the bar of a profile with these operators."""
    (bar,) = pictures.bars([profile(operators=operators)])
    return bar


def test_a_few_operators_are_named_and_the_rest_are_one() -> None:
    """Segments make the time of all operators, in the order of their work; what takes next to nothing is not named."""
    bar = bar_of(*(ProfiledOperator(f"aten::op{number}", 1, 1e-3 * (number + 1), 0) for number in range(10)))
    assert [each.name for each in bar.segments] == [
        *(f"op{9 - number}" for number in range(pictures.MOST_NAMED)),
        "4 other",
    ]
    assert bar.sum_s == pytest.approx(55e-3)
    assert bar.segments[-1].colour == CATEGORY_COLOURS[OTHER]
    bar = bar_of(ProfiledOperator("aten::mm", 1, 1.0, 0), ProfiledOperator("aten::view", 1, 1e-6, 0))
    assert [each.name for each in bar.segments] == ["mm", "1 other"]
    bar = bar_of(
        *(ProfiledOperator(name, 1, 1e-3, 0) for name in ("aten::add", "aten::_softmax", "aten::bmm", "aten::mm"))
    )
    assert [each.name for each in bar.segments] == ["mm", "bmm", "_softmax", "add"]
    gpu = bar_of(
        ProfiledOperator("aten::mm", 1, 5e-6, 0, device_s=2e-3),
        ProfiledOperator("aten::view", 1, 3e-6, 0, device_s=0.0),
    )
    assert (gpu.sum_s, [each.name for each in gpu.segments]) == (2e-3, ["mm"])


def test_stages_come_first_and_then_the_slowest() -> None:
    """However the profiles came; the name of the picture says what is fixed, whatever was profiled there."""
    times = {"sdpa": 1.0, "eager": 3.0, "compiled_eager": 2.0}
    profiles = [dataclasses.replace(profile(name), timed_s=time_s) for name, time_s in times.items()]
    ordered = [bar.implementation for bar in pictures.bars([*profiles, stepwise()])]
    assert ordered == ["stepwise", "eager", "compiled_eager", "sdpa"]
    for each in (stepwise(), profile()):
        assert [of.name for of in pictures.pictures([each])] == ["stages-vit-cpu-float32-inference-b8-n197-c384-h6-t1"]


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
