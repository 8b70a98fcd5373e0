"""A visit: one process measures all implementations of one point."""

from functools import partial

from bench.measure.outcome import Announce, Outcome, Request, Visit
from bench.measure.preparation import obstacle, prepare
from bench.measure.turns import PreparedPoint
from bench.sampling.rounds import sample

__all__ = ["Announce", "Outcome", "PreparedPoint", "Request", "Visit", "make", "obstacle", "prepare"]


def make(request: Request, announce: Announce) -> Visit:
    """Measure the point's implementations in this process, and return the outcome of each."""
    visit = Visit({name: Outcome() for name in request.implementations}, ceiling=request.ceiling)
    prepared = prepare(request, visit, announce)
    if prepared is not None:
        _take_rounds(prepared)
    return visit


def _take_rounds(prepared: PreparedPoint) -> None:
    request, outcomes = prepared.context.request, prepared.context.visit.outcomes
    samplers = {name: partial(prepared.take_sample, name) for name in prepared.implementations}
    with prepared.quiet():
        samples = sample(samplers, request.baseline, request.limits, prepared.rng, prepared.fail)
    prepared.conclude({name: min(own.values_s) for name, own in samples.items()})
    for name, own in samples.items():
        if outcomes[name].status == "ok":
            outcomes[name].metrics["slots"] = own
