"""Which core to use at each point of a run."""

import math
from collections.abc import Mapping

import pytest

from bench.analyse.choices import Choice, choices, gain, is_core
from bench.analyse.summary import of_records
from bench.plan.case import Case, Point
from bench.stats.estimates import Interval
from bench.store.record import Record
from tests import examples
from tests.examples import measured


def records(point: Point, seconds: Mapping[str, float], processes: int = 5) -> list[Record]:
    """Return records of a point at which implementations take some seconds, give or take 1 in 1,000."""
    return [
        measured(Case(point, name), process, value_s)
        for process in range(processes)
        for name, value_s in seconds.items()
    ]


def chosen(of: list[Record]) -> list[Choice]:
    """Return the choices of a run of these records, with eager as its baseline."""
    return choices(of_records(of, "eager"))


@pytest.mark.parametrize(
    ("seconds", "name", "speedup", "slowdown_high"),
    [
        ({"eager": 1.0, "sdpa": 1.2}, "eager", 1.2, 1.0),
        ({"eager": 1.2, "sdpa": 1.0}, "sdpa", 1.0, 1.0),
        ({"eager": 1.0, "sdpa": 1.0}, "sdpa", 1.0, 1.002),
        ({"eager": 1.2, "sdpa": 1.1, "online": 1.0}, "online", 1.1, 1.0),
        ({"eager": 1.1, "sdpa": 1.2, "compiled_sdpa": 0.5, "mha": 0.4, "flex": 0.3}, "eager", 1.0909, 1.0),
    ],
)
def test_a_core_is_chosen_if_it_is_shown_to_be_faster_than_sdpa(
    seconds: Mapping[str, float], name: str, speedup: float, slowdown_high: float
) -> None:
    """Of those that replace the core alone and need no compilation; else it is sdpa, with what that can cost."""
    (choice,) = chosen(records(examples.point(), seconds))
    assert choice.implementation == name
    assert choice.speedup.value == pytest.approx(speedup, rel=0.005)
    assert choice.speedup.low <= choice.speedup.value <= choice.speedup.high
    assert choice.slowdown_high == pytest.approx(slowdown_high, abs=0.005)


def test_one_process_shows_nothing() -> None:
    """Sdpa is to be used, and what that costs isn't known."""
    (choice,) = chosen(records(examples.point(), {"eager": 1.0, "sdpa": 2.0}, processes=1))
    assert choice.implementation == "sdpa"


def test_points_without_sdpa_and_those_of_models_have_no_choice() -> None:
    """Without sdpa there is nothing to compare with, and a model has more than a core."""
    model = examples.point(layer="timm:vit_tiny_patch16_224")
    assert chosen([*records(model, {"sdpa": 1.0, "eager": 2.0}), *records(examples.point(), {"eager": 1.0})]) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("eager", True),
        ("online[block_tokens=16]", True),
        ("sdpa_flash", True),
        ("flash_attn", True),
        ("mykernel:attend", True),
        ("compiled_sdpa", False),
        ("flex", False),
        ("mha", False),
        ("jax", False),
        ("measured[table=a.json]", False),
        ("an_installed_one", False),
    ],
)
def test_what_replaces_the_core_alone_is_known(name: str, expected: bool) -> None:
    """A user's own may do so: the table's reader says if it doesn't."""
    assert is_core(name) is expected


def test_the_gain_is_the_most_that_is_shown() -> None:
    """That is the largest lower end; without any choice it is nothing."""
    point = examples.point()
    of = [Choice(point, "eager", 1.0, Interval(1.2, low, 1.4)) for low in (1.02, 1.05)]
    assert gain(of) == pytest.approx(0.05)
    assert gain([]) == 0
    assert not math.isnan(gain([Choice(point, "sdpa", math.nan, Interval(1.0, 1.0, 1.0))]))
