"""A seat at a duel: one implementation, prepared and kept, that is asked for one slot at a time.

The other one sits in a process of another environment; who is asked when is the engine's.
"""

import math
from contextlib import ExitStack

from bench.measure import visit
from bench.measure.cores import bound_to
from bench.measure.visit import Announce, Outcome, Request, Standing, Visit
from bench.sampling.rounds import Reading


class Seat:
    """Holds what a visit would, between one request and the next."""

    def __init__(self) -> None:
        self._visit = Visit({})
        self._standing: Standing | None = None
        self._name = ""
        self._fastest_s = math.inf
        self._quiet = ExitStack()

    def prepare(self, request: Request, announce: Announce, core: int | None = None) -> Outcome:
        """Bring the request's one implementation through the gate and warm it up; return its outcome so far.

        Its turns are taken on `core`, where one is given.
        """
        self._leave()
        (self._name,) = request.implementations
        self._visit = Visit({self._name: Outcome()}, ceiling=request.ceiling)
        self._standing = visit.prepare(request, self._visit, announce)
        if self._standing is not None:
            self._quiet.enter_context(bound_to(core))
            self._quiet.enter_context(self._standing.quiet())
        return self._outcome

    def slot(self) -> Reading | Outcome:
        """Return one slot, or the outcome where the implementation has ended."""
        if self._standing is None:
            return self._outcome
        try:
            reading = self._standing.turn(self._name)
        except Exception as error:
            self._standing.fail(self._name, error)
            self._leave()
            return self._outcome
        self._fastest_s = min(self._fastest_s, *reading.timings_s)
        return reading

    def finish(self) -> Visit:
        """End the rounds, and return the visit without its slots: those are with whoever asked for them."""
        standing, fastest_s = self._standing, self._fastest_s
        self._leave()
        if standing is not None and fastest_s < math.inf:
            standing.conclude({self._name: fastest_s})
        return self._visit

    @property
    def _outcome(self) -> Outcome:
        return self._visit.outcomes[self._name]

    def _leave(self) -> None:
        self._quiet.close()
        self._standing, self._fastest_s = None, math.inf
