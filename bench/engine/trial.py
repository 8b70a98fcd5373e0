"""A trial of implementations at one point, which can be repeated and leaves no run."""

import random
from collections.abc import Iterator, Sequence
from typing import Self

from bench.engine.member import Member
from bench.engine.pool import Pool
from bench.engine.replicate import Replicate
from bench.plan.case import Case, Point
from bench.sampling.rounds import Length

REPLICATES, ROUNDS_S = 4, 1.5
"""The replicates of a trial, and the seconds of rounds in each."""


class Trial:
    """A context manager inside which implementations are tried at a point; nothing is stored.

    Entering it raises WrongRequest if no process can be started.
    """

    def __init__(self, point: Point, baseline: str, timeout_s: float) -> None:
        self._point = point
        self._baseline = baseline
        self._timeout_s = timeout_s
        self._pool = Pool(1, (baseline,))
        self._seed = random.SystemRandom().randrange(1 << 32)

    def __enter__(self) -> Self:
        try:
            self._pool.check([self._point])
        except BaseException:
            self._pool.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def replicates(self, names: Sequence[str]) -> Iterator[dict[str, Member]]:
        """Yield the members of each replicate of the baseline and these implementations until one fails."""
        for number in range(REPLICATES):
            members = {
                name: Member(Case(self._point, name), self._pool, thorough=number == 0)
                for name in dict.fromkeys((self._baseline, *names))
            }
            of = [*members.values()]
            Replicate(of, of[0], Length(ROUNDS_S), self._seed, number).measure(self._timeout_s)
            yield members
            if not all(member.is_ok for member in members.values()):
                return
