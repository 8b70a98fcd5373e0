"""The rates that are measured."""

import dataclasses
from collections.abc import Callable

import pytest

from bench.measure.clock import Timing
from bench.measure.devices import Device
from bench.measure.speed import DeviceRates
from bench.plan.case import Point
from bench.plan.device import CPU
from tests.make.points import point


def timed_by(monkeypatch: pytest.MonkeyPatch, seconds: Callable[[], float]) -> None:
    """Let every timing take so long, and products of two sizes be made."""
    monkeypatch.setattr(Point, "kind", dataclasses.replace(CPU, products=(8, 16)))
    monkeypatch.setattr(Device, "timer", lambda _device, _timing: lambda call, _calls: Timing((call(), seconds())[1]))


def test_the_best_of_all_turns_and_sizes_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of 8 and 16 and a copy: the larger product in 2 ms is the faster one, until a turn of 1 ms."""
    turns = iter([1e-3] * 2 + [2e-3] * 3 + [1e-3] * 3)
    timed_by(monkeypatch, lambda: next(turns))
    rates = DeviceRates(point())
    assert rates.best(1, 0.0).flops_per_s == pytest.approx(2 * 16**3 / 2e-3)
    best = rates.best(1, 0.0)
    assert best.flops_per_s == pytest.approx(2 * 16**3 / 1e-3)
    assert best.bytes_per_s == pytest.approx(CPU.copied_bytes / 1e-3)


def test_no_larger_product_follows_a_slow_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow device the first size is all there is."""
    timed_by(monkeypatch, lambda: 1.0)
    assert DeviceRates(point()).best(1, 0.0).flops_per_s == pytest.approx(2 * 8**3)
