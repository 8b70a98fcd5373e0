"""A thread kept on one core."""

import os

import pytest

from bench.measure.cores import bound_to

can_choose = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="cores can't be chosen here")


@can_choose
def test_it_stays_on_the_core_and_is_let_go() -> None:
    """Where the thread may run is as before when it is over."""
    cores = os.sched_getaffinity(0)
    with bound_to(min(cores)):
        assert os.sched_getaffinity(0) == {min(cores)}
    assert os.sched_getaffinity(0) == cores


def test_no_core_is_no_bond(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is anything asked of a system that knows no such thing."""
    with bound_to(None):
        pass
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    with bound_to(0):
        pass
