"""Odd honest kernels are blamed for nothing in a measurement, whichever way they compute."""

import shutil

import pytest

from tests import honest
from tests.make.points import point
from tests.measure.stub import case

pytestmark = pytest.mark.slow

RUNS = [("inference", name) for name in honest.ALL] + [("train", name) for name in honest.IN_TRAINING]


@pytest.mark.parametrize(("mode", "name"), RUNS)
def test_an_odd_kernel_is_right_and_nothing_is_said_against_it(mode: str, name: str) -> None:
    """From its first call to the last, timed calls and gradients among them."""
    if name == "by_c" and not shutil.which("gcc"):
        pytest.skip("needs gcc")
    with case(point(num_tokens=70, mode=mode), f"tests.honest:{name}", thorough=True) as process:
        reply = process.measure(5)
        reasons = process.reasons()
    assert (reply["status"], reply["detail"]) == ("ok", "")
    assert {*reasons.values()} == {""}
