"""The picture of where a point's calls spend their time."""

import dataclasses
import functools

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from bench.show.figures.stage_bars import LONGEST, MOST_NAMED, bars, figure, name, short
from bench.show.operators import CATEGORY_COLOURS, OTHER
from bench.show.palette import stage_colour
from bench.store.profile import Operator, Profile
from tests.profiles import STEPS, profile, stepwise
from tests.show.figures.legible import assert_legible, drawn, texts

EAGER = tuple(
    Operator(name, 1, time_s, 0)
    for name, time_s in {"aten::mm": 4e-3, "aten::bmm": 4e-3, "aten::_softmax": 2e-3, "aten::copy_": 2e-4}.items()
) + tuple(Operator(f"aten::view{number}", 1, 1e-6, 0) for number in range(9))
LONG = tuple(Operator(f"graph_0_cpp_fused_mul_view_transpose_softmax_{number}", 1, 1e-3, 0) for number in range(6))


def of_point(mode: str) -> list[Profile]:
    """Return profiles of one point, one of them with a long name and longer names of kernels."""
    own = "my_package.attention.kernels:the_one_with_a_long_name"
    return [
        stepwise(mode=mode, residual_s=-0.5e-3),
        profile("eager", operators=EAGER, mode=mode),
        profile(own, operators=LONG, mode=mode),
        profile("sdpa", mode=mode),
    ]


@functools.cache
def sheet(mode: str) -> Figure:
    """Return the picture of a mode."""
    return figure(of_point(mode))


def test_segments_are_as_wide_as_their_stages_took() -> None:
    """One after the other from 0 on, in the colours of the stages."""
    segments = drawn(sheet("inference"), "segment", Rectangle)
    start_s = 0.0
    for stage, (_, time_s, _) in STEPS.items():
        segment = segments[f"stepwise {stage}"]
        assert segment.get_x() == pytest.approx(start_s)
        assert segment.get_width() == pytest.approx(time_s)
        assert to_hex(segment.get_facecolor()) == stage_colour(stage)
        start_s += time_s


def test_the_backward_pass_follows_on_the_same_axis() -> None:
    """Its first stage begins where the last one of the forward pass ends."""
    segments = drawn(sheet("train"), "segment", Rectangle)
    skip = segments["stepwise skip"]
    (first, *_) = [segment for name, segment in segments.items() if name.endswith(", backward")]
    assert first.get_x() == pytest.approx(skip.get_x() + skip.get_width())


def test_the_whole_is_marked_at_its_latency_and_the_residual_is_written() -> None:
    """Also where the stages take longer than the whole, which leaves no gap to be drawn."""
    made = sheet("inference")
    marks = drawn(made, "whole", Line2D)
    for each in of_point("inference"):
        assert list(np.asarray(marks[each.case.implementation].get_xdata())) == [each.timed_s] * 2
    assert "stepwise" not in drawn(made, "residual", Rectangle)
    said = [text.get_text() for text in texts(made)]
    assert "residual -500 µs (-5.1%)" in said
    gap = drawn(figure([stepwise(residual_s=0.5e-3)]), "residual", Rectangle)["stepwise"]
    assert gap.get_width() == pytest.approx(0.5e-3)


@pytest.mark.parametrize("mode", ["inference", "train"])
def test_every_segment_is_named_with_its_time(mode: str) -> None:
    """In it where there is room, else below it."""
    said = "\n".join(text.get_text() for text in texts(sheet(mode)))
    for stage in of_point(mode)[0].stages:
        assert stage.name in said
    assert all(word in said for word in ("mm", "bmm", "copy_ 200 µs", "9 other 9.00 µs", "flash_attention_for_cpu"))


@pytest.mark.parametrize("mode", ["inference", "train"])
def test_all_words_are_on_the_page_and_none_overlap(mode: str) -> None:
    """However long a name is."""
    made = sheet(mode)
    assert_legible(made)


def test_the_name_says_what_is_fixed() -> None:
    """Whatever was profiled there."""
    assert name([stepwise()]) == name([profile()]) == "stages-vit-cpu-float32-inference-b8-n197-c384-h6-t1"


def test_a_profile_in_stages_has_a_segment_for_each() -> None:
    """In their order, as wide as the stage took; backward ones say so, in the colour of the same stage."""
    (inference,) = bars([stepwise()])
    assert [(each.name, each.time_s) for each in inference.segments] == [
        (name, time_s) for name, (_, time_s, _) in STEPS.items()
    ]
    (train,) = bars([stepwise(mode="train")])
    forward, backward = train.segments[: len(STEPS)], train.segments[len(STEPS) :]
    assert [each.name for each in backward] == [f"{each.name}, backward" for each in forward]
    assert [each.colour for each in backward] == [each.colour for each in forward]
    assert [each.is_backward for each in train.segments] == [False] * len(STEPS) + [True] * len(STEPS)


def test_the_residual_is_what_the_whole_takes_beyond_its_segments() -> None:
    """Below 0 where the profiler slowed these down."""
    (slower,) = bars([stepwise(residual_s=0.4e-3)])
    (faster,) = bars([stepwise(residual_s=-0.4e-3)])
    assert slower.residual_s == pytest.approx(0.4e-3)
    assert faster.residual_s == pytest.approx(-0.4e-3)


def test_a_few_operators_are_named_and_the_rest_are_one() -> None:
    """Nothing is lost: the segments make the time of all operators."""
    many = tuple(Operator(f"aten::op{number}", 1, 1e-3 * (number + 1), 0) for number in range(10))
    (bar,) = bars([profile(operators=many)])
    assert [each.name for each in bar.segments] == [*(f"op{9 - number}" for number in range(MOST_NAMED)), "4 other"]
    assert bar.sum_s == pytest.approx(55e-3)
    assert bar.segments[-1].colour == CATEGORY_COLOURS[OTHER]


def test_what_takes_next_to_nothing_is_not_named() -> None:
    """However few operators there are."""
    (bar,) = bars([profile(operators=(Operator("aten::mm", 1, 1.0, 0), Operator("aten::view", 1, 1e-6, 0)))])
    assert [each.name for each in bar.segments] == ["mm", "1 other"]


def test_operators_stand_in_the_order_of_the_work_they_do() -> None:
    """So that bars can be compared by eye: the same work is in the same place, whatever it takes."""
    names = ("aten::add", "aten::_softmax", "aten::bmm", "aten::mm")
    (bar,) = bars([profile(operators=tuple(Operator(name, 1, 1e-3, 0) for name in names))])
    assert [each.name for each in bar.segments] == ["mm", "bmm", "_softmax", "add"]


def test_on_a_gpu_a_segment_is_the_gpus_time() -> None:
    """What the host took to launch is no part of it."""
    (bar,) = bars([profile(operators=(Operator("aten::mm", 1, 5e-6, 0, device_s=2e-3),))])
    assert bar.sum_s == 2e-3


def test_stages_come_first_and_then_the_slowest() -> None:
    """However the profiles came."""
    times = {"sdpa": 1.0, "eager": 3.0, "compiled_eager": 2.0}
    profiles = [dataclasses.replace(profile(name), timed_s=time_s) for name, time_s in times.items()]
    found = bars([*profiles, stepwise()])
    assert [bar.implementation for bar in found] == ["stepwise", "eager", "compiled_eager", "sdpa"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aten::bmm", "bmm"),
        ("aten::_scaled_dot_product_flash_attention_for_cpu", "flash_attention_for_cpu"),
        ("x" * LONGEST, "x" * LONGEST),
        ("x" * (LONGEST + 1), "x" * (LONGEST - 1) + "…"),
    ],
)
def test_names_are_as_short_as_they_can_be(name: str, expected: str) -> None:
    """What goes without saying is left out, and what is long is cut."""
    assert short(name) == expected
