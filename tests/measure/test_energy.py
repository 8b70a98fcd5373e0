"""The energy of a call, by a counter that is a stand-in: no machine is asked to have one."""

from collections.abc import Callable
from time import perf_counter

import pytest

from bench.measure import measured_case
from bench.measure.devices import Device
from tests.make.points import point
from tests.measure.stub import case

WATTS = 50


@pytest.mark.slow
@pytest.mark.parametrize(
    ("counter", "is_first", "is_counted"),
    [
        (lambda: WATTS * perf_counter(), True, True),
        (lambda: WATTS * perf_counter(), False, False),
        (lambda: 5.0, True, False),
    ],
    ids=["counted", "later replicate", "stands still"],
)
def test_a_call_takes_its_share_of_the_joules(
    counter: Callable[[], float | None],
    is_first: bool,
    is_counted: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At 50 W a call's joules are 50 times its seconds, in the first replicate; without a counter there are none."""
    monkeypatch.setattr(measured_case, "ENERGY_S", 0.05)
    monkeypatch.setattr(Device, "energy_j", lambda _: counter())
    with case(point(), "sdpa", thorough=is_first) as process:
        process.prepare()
        process.sample()
        metrics = process.finish()["metrics"]
        call_s = process.call_s
    energy_j = metrics.get("energy_j")
    assert (energy_j is not None) is is_counted
    if energy_j is not None:
        assert WATTS * call_s / 10 < energy_j < WATTS * call_s * 10
