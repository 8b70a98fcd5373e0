"""The core to use at each point."""

from collections.abc import Mapping
from typing import Any

import pytest

from bench.analyse.choices import CoreChoice, choices, gain, is_core
from bench.analyse.summary import of_records
from bench.plan.case import Point
from bench.stats.estimates import Interval
from tests.make.points import vit_s
from tests.make.records import timed


def chosen(seconds: Mapping[str, float], processes: int = 5, at: Point | None = None) -> list[CoreChoice]:
    """Return the choices of a run in which implementations take some seconds, give or take 1 in 1,000."""
    return choices(of_records(timed([at or vit_s()], seconds, processes), "eager"))


@pytest.mark.parametrize(
    ("seconds", "name", "speedup", "slowdown_high"),
    [
        ({"eager": 1.0, "sdpa": 1.2}, "eager", 1.2, 1.0),
        ({"eager": 1.2, "sdpa": 1.0}, "sdpa", 1.0, 1.0),
        ({"eager": 1.0, "sdpa": 1.0}, "sdpa", 1.0, 1.008),
        ({"eager": 0.9999, "sdpa": 1.0}, "sdpa", 1.0, 1.008),
        ({"eager": 1.2, "sdpa": 1.1, "online": 1.0}, "online", 1.1, 1.0),
        ({"eager": 1.1, "sdpa": 1.2, "compiled_sdpa": 0.5, "mha": 0.4, "flex": 0.3}, "eager", 1.0909, 1.0),
    ],
)
def test_a_core_is_chosen_if_it_is_shown_to_be_faster_than_sdpa(
    seconds: Mapping[str, float], name: str, speedup: float, slowdown_high: float
) -> None:
    """Of those that replace the core alone and need no compilation; else it is sdpa, with what that can cost."""
    (choice,) = chosen(seconds)
    assert choice.implementation == name
    assert choice.speedup.value == pytest.approx(speedup, rel=0.005)
    assert choice.speedup.low <= choice.speedup.value <= choice.speedup.high
    assert choice.slowdown_high == pytest.approx(slowdown_high, abs=0.005)


def test_points_without_sdpa_and_those_of_models_have_no_choice() -> None:
    """Without sdpa there is nothing to compare with, a model has more than a core, and one process shows nothing."""
    assert chosen({"sdpa": 1.0, "eager": 2.0}, at=vit_s(layer="timm:vit_tiny_patch16_224")) == []
    assert chosen({"eager": 1.0}) == []
    assert [choice.implementation for choice in chosen({"eager": 1.0, "sdpa": 2.0}, processes=1)] == ["sdpa"]


@pytest.mark.parametrize(
    "columns",
    [
        {"mode": "backward"},
        {"window_size": 7},
        {"attn_bias": "relative"},
        {"mask": "padding"},
        {"num_kv_tokens": 77, "context_dim": 384},
        {"num_kv_heads": 2},
        {"lengths": "uniform"},
    ],
)
def test_calls_that_a_table_does_not_know_have_no_choice(columns: dict[str, Any]) -> None:
    """A table has no kind for them: a faster core there says nothing about calls without."""
    seconds = {"eager": 1.0, "sdpa": 2.0}
    assert chosen(seconds, at=vit_s(layer="attention", **columns)) == []
    (choice,) = chosen(seconds, at=vit_s(layer="attention", qk_norm="rms", rope="axial"))
    assert choice.implementation == "eager"


def test_a_shape_has_one_core_whatever_timings_a_run_has() -> None:
    """That by the first timing of its device: the others are answers to other questions."""
    seconds = {"host": {"eager": 1.0, "sdpa": 2.0}, "device-cold": {"eager": 3.0, "sdpa": 2.0}}
    records = [each for timing, of in seconds.items() for each in timed([vit_s(device="cuda", timing=timing)], of)]
    (choice,) = choices(of_records(records, "eager"))
    assert (choice.point.timing, choice.implementation) == ("device-cold", "sdpa")
    only = [record for record in records if record.case.point.timing == "host"]
    assert [each.implementation for each in choices(of_records(only, "eager"))] == ["eager"]


def test_what_replaces_the_core_alone_is_a_core() -> None:
    """A user's own may do so: the table's reader says if it doesn't."""
    cores = "eager", "online[block_tokens=16]", "sdpa_flash", "flash_attn", "mykernel:attend"
    others = "compiled_sdpa", "flex", "mha", "openvino", "measured[table=a.json]", "an_installed_one"
    assert [name for name in (*cores, *others) if is_core(name)] == [*cores]


def test_the_gain_is_the_most_that_is_shown() -> None:
    """That is the largest lower end; without any choice it is nothing."""
    of = [CoreChoice(vit_s(), "eager", 1.0, Interval(1.2, low, 1.4)) for low in (1.02, 1.05)]
    assert [gain(of), gain([])] == pytest.approx([0.05, 0])
