"""Interim analyses (looks): rows are judged at planned numbers of processes, until all are decided.

A test that is repeated while values come in errs more often than its level says (Armitage, McPherson & Rowe 1969).
So the looks are planned, and each gets an equal part of the level (Bonferroni's inequality, which needs no joint
distribution of the looks' t statistics). Within a look, Holm's correction (1979) is taken over the rows. The intervals
are repeated ones (Jennison & Turnbull 1989): their level is that of all looks together.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bench.plan.errors import WrongRequest
from bench.stats.estimates import Estimates, ratios
from bench.stats.limits import INCONCLUSIVE, Limits, judged
from bench.stats.replicates import CONFIDENCE
from bench.stats.significance import holm

LOOKS = (5, 10, 20)
"""Processes at which a look is taken: 5 show large changes, a claim takes 10, and 20 halve the interval of 5."""

OPEN = "open"

USUAL = Limits()
"""The limits of a duel that asks for no others."""


@dataclass(frozen=True)
class Judgement:
    """The verdict on a row after this number of processes, and its ratio with the interval, NaN if unknown."""

    verdict: str = OPEN
    processes: int = 0
    ratio: float = math.nan
    low: float = math.nan
    high: float = math.nan

    @property
    def is_decided(self) -> bool:
        """Whether the row has its verdict, so that no more needs to be measured."""
        return self.verdict != OPEN


def check_looks(looks: Sequence[int]) -> None:
    """Raise WrongRequest unless looks are in ascending order and each has at least two processes."""
    if not looks or looks[0] < 2 or any(later <= sooner for sooner, later in itertools.pairwise(looks)):
        text = ",".join(map(str, looks))
        raise WrongRequest(f"looks {text} must be whole numbers of at least 2, each larger than the one before")


def judge(
    processes: Sequence[int],
    estimates: Callable[[Sequence[int], int], Estimates],
    looks: Sequence[int] = LOOKS,
    limits: Limits = USUAL,
) -> list[Judgement]:
    """Return the judgement on each row after the looks taken so far.

    `processes` are those that measured each row; a row without any takes no part. `estimates(rows, look)` returns the
    log ratios of these rows by the first processes, as many as the look has.
    A look is taken once every open row has its number of processes, and uses no more than these. The verdict of a look
    is final.
    """
    judgements = [Judgement() for _ in processes]
    for look in looks:
        rows = [row for row, number in enumerate(processes) if number and not judgements[row].is_decided]
        if not rows or any(processes[row] < look for row in rows):
            break
        change = _of_all(estimates(rows, look), rows, len(processes))
        for row, judgement in zip(rows, _look(judgements, change, rows, look, looks, limits), strict=True):
            judgements[row] = judgement
    return judgements


def _of_all(some: Estimates, rows: Sequence[int], count: int) -> Estimates:
    """Return the estimates of some rows among all; the others are NaN."""
    columns = np.full((3, count), np.nan)
    columns[:, list(rows)] = some.value, some.error, some.freedom
    return Estimates(*columns)


def _look(
    judgements: Sequence[Judgement],
    change: Estimates,
    rows: Sequence[int],
    look: int,
    looks: Sequence[int],
    limits: Limits,
) -> list[Judgement]:
    """Return the judgements of one look on the rows that are still open."""
    # equivalent rows stay among the tests: chance decides which they are, and must not raise the others' level
    p_changed = np.where([earlier.verdict == "equivalent" for earlier in judgements], 1.0, limits.p_changed(change))
    changed = holm(p_changed) < limits.level / len(looks)
    default = INCONCLUSIVE if look == looks[-1] else OPEN
    verdicts = judged(change, changed, limits, looks=len(looks), default=default).tolist()
    columns = [each.tolist() for each in ratios(change, 1 - (1 - CONFIDENCE) / len(looks))]
    return [Judgement(verdicts[row], look, *(column[row] for column in columns)) for row in rows]
