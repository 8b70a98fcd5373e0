"""The worker's side of a paired run: one implementation prepared once, then one sample for each request."""

import gc
import os
from typing import Any

import pytest
import torch

from bench.measure import ceiling
from bench.measure.seat import Seat
from bench.measure.visit import Outcome, Request
from bench.sampling.rounds import Sample, StoppingRule
from bench.store.roofline import Roof
from tests.points import point

pytestmark = pytest.mark.slow


def asked(implementation: str = "eager", **columns: Any) -> Request:
    """Return the request to prepare an implementation at a tiny point."""
    limits = StoppingRule(target=0.5, budget_s=0.05, processes=3)
    return Request(point(**columns), (implementation,), implementation, limits, seed=7, thorough=True)


def seated(implementation: str = "eager") -> tuple[Seat, Outcome]:
    """Return a seat with an implementation, and how its preparation ended."""
    seat = Seat()
    return seat, seat.prepare(asked(implementation), lambda *_: None)


def test_a_prepared_implementation_gives_sample_after_sample() -> None:
    """The check and the inspection come first, then each request is one sample of as many timings."""
    seat, outcome = seated()
    assert outcome.status == "ok"
    assert outcome.metrics["kernels"]
    assert outcome.metrics["settled"] in (True, False)
    samples = [seat.sample() for _ in range(3)]
    assert all(isinstance(sample, Sample) and len(sample.timings_s) == 3 for sample in samples)
    made = seat.finish()
    assert made.outcomes["eager"].status == "ok"
    assert "slots" not in made.outcomes["eager"].metrics
    assert made.busy_s > 0


def test_samples_are_taken_in_the_points_mode_and_without_garbage_collection() -> None:
    """Both hold between one request and the next, and no longer than until the end."""
    seat, _ = seated()
    assert (torch.is_inference_mode_enabled(), gc.isenabled()) == (True, False)
    seat.finish()
    assert (torch.is_inference_mode_enabled(), gc.isenabled()) == (False, True)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="cores can't be chosen here")
def test_samples_are_taken_on_the_core_that_is_named() -> None:
    """As long as they are taken, and not while it prepares."""
    cores = os.sched_getaffinity(0)
    seat = Seat()
    seat.prepare(asked(), lambda *_: None, core=max(cores))
    assert os.sched_getaffinity(0) == {max(cores)}
    seat.finish()
    assert os.sched_getaffinity(0) == cores


def test_an_incorrect_implementation_takes_no_sample() -> None:
    """Its outcome is the answer to every request, and nothing is held for it."""
    seat, outcome = seated("tests.foreign:wrong")
    assert outcome.status == "incorrect"
    assert seat.sample() == outcome
    assert seat.finish().outcomes["tests.foreign:wrong"] == outcome
    assert gc.isenabled()


def test_one_that_fails_in_a_sample_has_ended() -> None:
    """The answer says how, then and afterwards."""
    seat, _ = seated("tests.foreign:raises_later")
    ended = seat.sample()
    assert isinstance(ended, Outcome)
    assert (ended.status, ended.detail) == ("error", "RuntimeError: tired")
    assert gc.isenabled()
    assert seat.sample() == seat.finish().outcomes["tests.foreign:raises_later"] == ended


def test_an_impossible_time_is_told_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asked for the slots learns that they were none."""
    best = Roof(1e9, 1e9)
    monkeypatch.setattr(ceiling, "judge", lambda *_: ceiling.Judgement(best, objection="impossible"))
    seat, _ = seated()
    seat.sample()
    outcome = seat.finish().outcomes["eager"]
    assert (outcome.status, outcome.detail) == ("error", "impossible")
    assert seat.finish().ceiling == best


def test_the_next_preparation_takes_the_place_of_the_last() -> None:
    """A side that was skipped leaves its process ready for the next point."""
    seat, _ = seated()
    assert seat.prepare(asked("sdpa", num_tokens=5), lambda *_: None).status == "ok"
    assert isinstance(seat.sample(), Sample)
    assert [*seat.finish().outcomes] == ["sdpa"]
    assert gc.isenabled()
