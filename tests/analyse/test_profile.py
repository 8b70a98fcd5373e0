"""Values that follow from a profile."""

from dataclasses import replace
from typing import Any

import pytest

from bench.analyse.profile import distortion, operator_table
from bench.store.profile import ProfiledOperator
from tests.make.profiles import profile
from tests.make.records import samples

BUSY = samples(1e-3, 1e-3, switches=(1, 1))


def test_the_table_of_operators_has_units_in_its_names() -> None:
    """There is a row for each in order; unknown values are missing, and kernels share a cell."""
    operators = ProfiledOperator("a", 2, 3.0, 1.0, 5e9, ("k", "l")), ProfiledOperator("b", 1, 1.0)
    table = operator_table(profile(operators=operators))
    numbers = ["calls", "self_s", "share", "flops", "device_s"]
    assert list(table) == ["name", "line", *numbers, "kernels"]
    assert (list(table["name"]), table["kernels"][0]) == (["a", "b"], "k;l")
    assert table["flops"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ""),
        ({"profiled_s": 1.19e-3}, ""),
        ({"profiled_s": 1.21e-3}, "so only counts can be trusted"),
        ({"profiled_s": 0.646e-3}, "changed its speed"),
        ({"samples": samples(*[1e-3] * 5, switches=(1, 0, 0, 0, 0))}, ""),
        ({"samples": samples(*[1e-3] * 4, switches=(1, 0, 0, 0))}, "disturbed 1 of 4 calls"),
        ({"samples": samples(*[1e-3] * 4, others=(0, 0, 1, 1))}, "disturbed 2 of 4 calls"),
        ({"samples": BUSY, "profiled_s": 7.5e-3}, "disturbed 2 of 2 calls"),
    ],
)
def test_what_makes_times_doubtful_is_said_once(changes: dict[str, Any], words: str) -> None:
    """Other processes beside a quarter of the calls come first; then a difference of a fifth between the calls."""
    text = distortion(replace(profile(), **{"timed_s": 1e-3, "profiled_s": 1e-3, **changes}))
    assert words in text
    assert bool(text) is bool(words)


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"samples": BUSY}, ""), ({"profiled_s": 3e-3}, "trust the times of kernels")],
)
def test_on_a_gpu_the_times_of_kernels_hold(changes: dict[str, Any], words: str) -> None:
    """A host that is slow or busy makes the gaps between them longer alone."""
    kernels = (ProfiledOperator("a", 1, 1e-3, 1e-3),)
    text = distortion(replace(profile(operators=kernels), **{"timed_s": 1e-3, "profiled_s": 1e-3, **changes}))
    assert words in text
    assert bool(text) is bool(words)
