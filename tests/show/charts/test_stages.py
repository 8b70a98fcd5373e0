"""The pictures of where the time of calls goes, by their data."""

import dataclasses

import pytest
from matplotlib.colors import to_hex

from bench.show.charts import stages as pictures
from bench.show.palette import CATEGORY_COLOURS, OTHER, stage_colour
from bench.store.profile import Profile, ProfiledOperator
from tests.make.profiles import STEPS, profile, stepwise
from tests.show.charts.drawn import made, words

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


def test_segments_are_as_wide_as_their_stages_took() -> None:
    """From 0 on, in the colours of the stages; the residual fills what is left of the whole."""
    (of,) = made(pictures.pictures([stepwise(residual_s=0.5e-3)]))
    *stages, residual = (box for each in of.figure.axes[0].containers for box in each)
    assert stages[0].get_x() == 0
    for box, (stage, (_, time_s, _)) in zip(stages, STEPS.items(), strict=True):
        assert to_hex(box.get_facecolor()) == stage_colour(stage)
        assert box.get_width() == pytest.approx(time_s)
    assert residual.get_width() == pytest.approx(0.5e-3)


@pytest.mark.parametrize("mode", ["inference", "train"])
def test_every_segment_is_named_with_its_time_in_it_or_below(mode: str) -> None:
    """However long a name is."""
    (of,) = made(pictures.pictures(of_point(mode)))
    for bar in pictures.bars(of_point(mode)):
        assert all(each.name in words(of) for each in bar.segments)
    assert "copy_ 200 µs · 9 other 9.00 µs" in words(of)
    assert "residual -500 µs" in words(of)


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
