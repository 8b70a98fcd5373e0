"""The worker's side of a paired A/B run: it holds one prepared implementation and returns one sample per request.

The other side is a process of another environment. The engine decides the order of the samples.
"""

import math
from contextlib import ExitStack

from bench.measure import visit
from bench.measure.cores import bound_to
from bench.measure.visit import Announce, Outcome, PreparedPoint, Request, Visit
from bench.sampling.rounds import Sample


class Seat:
    """One prepared implementation of one point, kept between requests."""

    def __init__(self) -> None:
        self._visit = Visit({})
        self._prepared: PreparedPoint | None = None
        self._name = ""
        self._fastest_s = math.inf
        self._quiet = ExitStack()

    def prepare(self, request: Request, announce: Announce, core: int | None = None) -> Outcome:
        """Check the request's one implementation and warm it up; return its outcome so far.

        Its samples are taken on `core`, if one is given.
        """
        self._leave()
        (self._name,) = request.implementations
        self._visit = Visit({self._name: Outcome()}, ceiling=request.ceiling)
        self._prepared = visit.prepare(request, self._visit, announce)
        if self._prepared is not None:
            self._quiet.enter_context(bound_to(core))
            self._quiet.enter_context(self._prepared.quiet())
        return self._outcome

    def sample(self) -> Sample | Outcome:
        """Return one sample, or the outcome if the case has ended."""
        if self._prepared is None:
            return self._outcome
        try:
            sample = self._prepared.take_sample(self._name)
        except Exception as error:
            self._prepared.fail(self._name, error)
            self._leave()
            return self._outcome
        self._fastest_s = min(self._fastest_s, *sample.timings_s)
        return sample

    def finish(self) -> Visit:
        """End the rounds, and return the visit without its samples: the engine already has them."""
        prepared, fastest_s = self._prepared, self._fastest_s
        self._leave()
        if prepared is not None and fastest_s < math.inf:
            prepared.conclude({self._name: fastest_s})
        return self._visit

    @property
    def _outcome(self) -> Outcome:
        return self._visit.outcomes[self._name]

    def _leave(self) -> None:
        self._quiet.close()
        self._prepared, self._fastest_s = None, math.inf
