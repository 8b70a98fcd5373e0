"""The picture of a point's profiles."""

import functools

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from bench.show.figures.stage_bars import figure, name
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
