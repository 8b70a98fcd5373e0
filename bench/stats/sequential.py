"""Interim analyses (looks): rows are judged at planned numbers of processes, until all are decided.

A test that is repeated while values come in errs more often than its level says (Armitage, McPherson & Rowe 1969).
So the looks are planned, and each gets an equal part of the level (Bonferroni's inequality, which needs no joint
distribution of the looks' t statistics). Within a look, Holm's correction (1979) is taken over the rows. The intervals
are repeated ones (Jennison & Turnbull 1989): their level is that of all looks together.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.plan.errors import WrongRequest
from bench.stats.estimates import ratios
from bench.stats.limits import INCONCLUSIVE, Limits, judged
from bench.stats.replicates import CONFIDENCE
from bench.stats.significance import holm, means

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


def judge(logs: Sequence[Sequence[float]], looks: Sequence[int] = LOOKS, limits: Limits = USUAL) -> list[Judgement]:
    """Return the judgement on each row after the looks taken so far, given its log ratios, one per process.

    A row without values takes no part. A look is taken once every open row has its number of processes, and uses no
    more than these. The verdict of a look is final.
    """
    judgements = [Judgement() for _ in logs]
    for look in looks:
        rows = [row for row, values in enumerate(logs) if values and not judgements[row].is_decided]
        if any(len(logs[row]) < look for row in rows):
            break
        values_by_row = [values[:look] if row in rows else () for row, values in enumerate(logs)]
        judgements = _look(judgements, values_by_row, look, looks, limits)
    return judgements


def _look(
    judgements: Sequence[Judgement],
    values_by_row: Sequence[Sequence[float]],
    look: int,
    looks: Sequence[int],
    limits: Limits,
) -> list[Judgement]:
    """Return the judgements after one look at the values of the rows that are still open."""
    change = means(values_by_row)
    # equivalent rows stay among the tests: chance decides which they are, and must not raise the others' level
    p_changed = np.where([earlier.verdict == "equivalent" for earlier in judgements], 1.0, limits.p_changed(change))
    changed = holm(p_changed) < limits.level / len(looks)
    default = INCONCLUSIVE if look == looks[-1] else OPEN
    verdicts = judged(change, changed, limits, looks=len(looks), default=default).tolist()
    columns = (each.tolist() for each in ratios(change, 1 - (1 - CONFIDENCE) / len(looks)))
    return [
        Judgement(verdict, len(values), *numbers) if values else earlier
        for earlier, values, verdict, *numbers in zip(judgements, values_by_row, verdicts, *columns, strict=True)
    ]
