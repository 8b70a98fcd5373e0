"""Profiles as bars."""

import dataclasses

import pytest

from bench.show.figures.stage_bar_data import LONGEST, MOST_NAMED, bars, short
from bench.show.operator_categories import CATEGORY_COLOURS, OTHER
from bench.store.profile import Operator
from tests.profiles import STEPS, profile, stepwise


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
    """Nothing is lost: the segments make the time of all operators; what takes next to nothing is not named."""
    many = tuple(Operator(f"aten::op{number}", 1, 1e-3 * (number + 1), 0) for number in range(10))
    (bar,) = bars([profile(operators=many)])
    assert [each.name for each in bar.segments] == [*(f"op{9 - number}" for number in range(MOST_NAMED)), "4 other"]
    assert bar.sum_s == pytest.approx(55e-3)
    assert bar.segments[-1].colour == CATEGORY_COLOURS[OTHER]
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
