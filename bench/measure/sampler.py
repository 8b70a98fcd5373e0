"""Warm-up and rounds: every implementation of a point once a round, each round in a fresh random order."""

import math
import random
import resource
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bench.analyse.statistics import expected_half_width, round_differences
from bench.measure.clock import Call, Timer
from bench.measure.neighbours import Neighbours
from bench.store.record import Slots

LEAST_TIMING_S = 1e-3
LEAST_TIMING_CLOCKS = 1000
"""A timing lasts at least a millisecond and so many readings of the clock, so that the clock is 0.1 % of it."""

TIMINGS = 3
LONG_CALL_S = 0.05
"""A call longer than this is its own slot: one timing of one call."""

WINDOWS = ((0.005, 5), (0.02, 3), (math.inf, 1))
"""Timings per warm-up window for calls up to so many seconds; the gate has called each before."""

WARM_QUARTILES, WARM_SPREAD = 0.05, 0.10
"""Two windows agree when their quartiles differ by less than 5 % and their spreads by less than 10 %
of the median (pyperf's warm-up test)."""

WARM_TIMINGS, WARM_S = 300, 5.0
"""Warm-up ends after so many timings or seconds even where no windows agree, but not before there are two."""

LEAST_ROUNDS, SURE_ROUNDS = 3, 5
"""So many rounds are taken whatever the budget says, and so many before a scatter is taken for known."""


@dataclass(frozen=True)
class Pace:
    """How one implementation is timed: calls per timing, timings per slot, and whether warm-up settled."""

    calls: int
    timings: int
    settled: bool


class Reading(NamedTuple):
    """One slot: seconds per call of each timing, involuntary context switches, page faults, others' share of cores."""

    timings_s: tuple[float, ...]
    switches: int
    faults: int
    others: float = 0.0


Taken = dict[str, dict[int, Reading]]
"""The readings of each implementation by the number of the round."""


@dataclass(frozen=True)
class Limits:
    """When rounds end: the half-width that every ratio's interval over `processes` would have, or the seconds."""

    target: float
    budget_s: float
    processes: int


def warm_up(
    call: Call, timer: Timer, clock_overhead_s: float, most_s: float = WARM_S, seen_s: float | None = None
) -> Pace:
    """Call until two consecutive windows of timings agree or `most_s` is over, and return the pace at which to time.

    `seen_s` is what the call before took, if that is known: a window of its own, where a window is one timing.
    """
    deadline = time.perf_counter() + min(most_s, WARM_S)
    least_s = max(LEAST_TIMING_S, LEAST_TIMING_CLOCKS * clock_overhead_s)
    calls, per_call_s = _calibrate(call, timer, least_s)
    window = next(timings for longest_s, timings in WINDOWS if per_call_s <= longest_s)
    values = [per_call_s] if calls == 1 else []  # a long call needs no second look at its pace
    if values and window == 1 and seen_s is not None:
        values.insert(0, seen_s)
    settled = _settled(values, window)
    while not settled and len(values) < WARM_TIMINGS:
        if len(values) >= 2 * window and time.perf_counter() > deadline:
            break
        values.append(timer(call, calls))
        settled = _settled(values, window)
    warm_s = min(values, default=per_call_s)
    return Pace(math.ceil(least_s / warm_s), 1 if warm_s > LONG_CALL_S else TIMINGS, settled)


def sample(
    turns: Mapping[str, Callable[[], Reading]],
    baseline: str,
    limits: Limits,
    rng: random.Random,
    failed: Callable[[str, Exception], None],
) -> dict[str, Slots]:
    """Take turns in rounds until every ratio is known to the target or the budget is spent.

    An implementation that reached the target leaves the rounds, the baseline stays;
    one whose turn raises leaves them too, and `failed` is told.
    Returns the slots of those that did not fail.
    """
    taken: Taken = {name: {} for name in turns}
    active = list(turns)
    end = time.perf_counter() + limits.budget_s
    number = 0
    while active and (number < LEAST_ROUNDS or time.perf_counter() < end):
        for name in rng.sample(active, len(active)):
            try:
                taken[name][number] = turns[name]()
            except Exception as error:
                failed(name, error)
                active.remove(name)
                del taken[name]
        number += 1
        active = _still_active(active, taken, baseline, limits)
    return {name: _slots(readings) for name, readings in taken.items()}


def slot(call: Call, timer: Timer, pace: Pace, neighbours: Neighbours) -> Reading:
    """Return one implementation's turn in a round."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    timings = tuple(timer(call, pace.calls) for _ in range(pace.timings))
    after = resource.getrusage(resource.RUSAGE_SELF)
    switches, faults = after.ru_nivcsw - before.ru_nivcsw, after.ru_minflt - before.ru_minflt
    return Reading(timings, switches, faults, neighbours.share())


def _calibrate(call: Call, timer: Timer, least_s: float) -> tuple[int, float]:
    calls = 1
    while True:
        per_call_s = timer(call, calls)
        if per_call_s * calls >= least_s:
            return calls, per_call_s
        calls = max(2 * calls, math.ceil(least_s / max(per_call_s, 1e-9)))


def _settled(values: list[float], window: int) -> bool:
    return len(values) >= 2 * window and _agree(values[-2 * window : -window], values[-window:])


def _agree(first: list[float], second: list[float]) -> bool:
    quartiles_1, quartiles_2 = np.percentile(first, [25, 50, 75]), np.percentile(second, [25, 50, 75])
    middle = float(quartiles_1[1])
    spread_1, spread_2 = quartiles_1[2] - quartiles_1[0], quartiles_2[2] - quartiles_2[0]
    return bool(
        np.all(np.abs(quartiles_2 - quartiles_1) <= WARM_QUARTILES * quartiles_1)
        and abs(spread_2 - spread_1) <= WARM_SPREAD * middle
    )


def _slots(readings: Mapping[int, Reading]) -> Slots:
    return Slots(
        rounds=tuple(readings),
        timings_s=tuple(reading.timings_s for reading in readings.values()),
        switches=tuple(reading.switches for reading in readings.values()),
        faults=tuple(reading.faults for reading in readings.values()),
        others=tuple(round(reading.others, 2) for reading in readings.values()),
    )


def _still_active(active: list[str], taken: Taken, baseline: str, limits: Limits) -> list[str]:
    """Return who goes on: those whose ratio is not known to the target yet, and the baseline beside them."""
    if baseline not in taken:
        return active
    base = _slots(taken[baseline])
    if len(taken) == 1:
        return active if _half_width([math.log(value) for value in base.values_s], limits) > limits.target else []
    left = [name for name in active if name != baseline and _undone(_slots(taken[name]), base, limits)]
    return [*left, baseline] if left else []


def _undone(own: Slots, base: Slots, limits: Limits) -> bool:
    differences = round_differences(own.values_s, own.rounds, base.values_s, base.rounds)
    return _half_width(differences, limits) > limits.target


def _half_width(values: list[float], limits: Limits) -> float:
    return math.inf if len(values) < SURE_ROUNDS else expected_half_width(values, limits.processes)
