"""A visit: one process measures one point, every implementation of it."""

from functools import partial

from bench.measure.outcome import Announce, Outcome, Request, Visit
from bench.measure.preparation import obstacle, prepare
from bench.measure.turns import Standing
from bench.sampling.rounds import sample

__all__ = ["Announce", "Outcome", "Request", "Standing", "Visit", "make", "obstacle", "prepare"]


def make(request: Request, announce: Announce) -> Visit:
    """Measure the point's implementations in this process, and return what was found out about each."""
    visit = Visit({name: Outcome() for name in request.implementations}, ceiling=request.ceiling)
    standing = prepare(request, visit, announce)
    if standing is not None:
        _take_rounds(standing)
    return visit


def _take_rounds(standing: Standing) -> None:
    request, outcomes = standing.setting.request, standing.setting.visit.outcomes
    turns = {name: partial(standing.turn, name) for name in standing.ready}
    with standing.quiet():
        taken = sample(turns, request.baseline, request.limits, standing.rng, standing.fail)
    standing.conclude({name: min(slots.values_s) for name, slots in taken.items()})
    for name, slots in taken.items():
        if outcomes[name].status == "ok":
            outcomes[name].found["slots"] = slots
