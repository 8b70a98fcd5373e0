"""The fastest at a point: the one definition, by ratios that are paired round by round.

Every pair of implementations is compared by one value per process: the midmean, over the rounds that both were in,
of the logarithm of their ratio. The fastest is the one that beats every other by the mean of these values.

Each rival is tested against the fastest by a t test over processes, with Holm's correction (1979) for their number.
The same data choose the fastest and test it. A wrong winner must beat the true fastest, and if two tie, either may do
so: therefore the test counts two tails. That suffices for values with equal scatter (Gutmann and Maymin 1987, Hung and
Fithian 2019); `tests/analyse/test_ranking.py` tests the rate for unequal scatter by simulation.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from bench.stats.estimates import Estimates, half_widths
from bench.stats.limits import EQUIVALENCE, LEVEL, MARGIN, Truths
from bench.stats.replicates import Array, Estimate, ratio
from bench.stats.sample_size import Counts, smallest
from bench.stats.significance import holm, means, p_beyond

WINNER: Final = "winner"
TIE: Final = "tie"
SLOWER: Final = "slower"
NOT_DECIDED: Final = "not decided"

Pairs = Mapping[tuple[str, str], Sequence[float]]
"""By two names, log(time of the second) - log(time of the first) in each process that measured both: positive if
the first is faster. It has each pair once, and each name with itself."""


@dataclass(frozen=True)
class Place:
    """An implementation among those of its point; `rank` is 1 for the fastest.

    `relative` is its time relative to the fastest, None if they never were in the same round.
    `standing` is None without a rival, WINNER if it is shown to be faster than every other by more than the margin,
    SLOWER if it is shown to be slower than the fastest by more than the margin, TIE if it is within 2 % of the fastest
    and all others are slower, else NOT_DECIDED.
    `further_processes` would decide the point, None if it is decided, if no reasonable number would, or if the scatter
    is unknown.
    """

    rank: int
    relative: Estimate | None
    standing: str | None
    further_processes: int | None = None


def ranked(names: Sequence[str], pairs: Pairs, log_times: Mapping[str, float]) -> dict[str, Place]:
    """Return the place of each implementation, the fastest first.

    `log_times` order those that never were in the same round.
    """
    if not names:
        return {}
    values = {
        (one, other): pairs[one, other] if (one, other) in pairs else [-value for value in pairs[other, one]]
        for one, other in itertools.product(names, repeat=2)
    }
    advantages = _advantages(names, values, log_times)
    first = int(np.argmax(np.min(advantages, axis=1)))
    order = sorted(range(len(names)), key=lambda index: (index != first, advantages[first, index]))
    log_ratios = [values[names[first], names[index]] for index in order]
    standings, further = _standings(log_ratios[1:])
    return {
        names[index]: Place(rank, ratio(logs) if logs else None, standing, further if standing == NOT_DECIDED else None)
        for rank, (index, logs, standing) in enumerate(zip(order, log_ratios, standings, strict=True), start=1)
    }


def _advantages(
    names: Sequence[str], values: Mapping[tuple[str, str], Sequence[float]], log_times: Mapping[str, float]
) -> Array:
    """Return by how much each row is faster than each column, as logarithms.

    The fastest has no negative value in its row. Medians can form a circle, so that no row is without: then `ranked`
    chooses the row whose smallest value is the largest.
    """

    def advantage(one: str, other: str) -> float:
        logs = values[one, other]
        return float(np.mean(logs)) if logs else log_times[other] - log_times[one]

    return np.array([[advantage(one, other) for other in names] for one in names])


def _standings(log_ratios: Sequence[Sequence[float]]) -> tuple[list[str | None], int | None]:
    """Return the standing of the fastest and of each rival, and how many further processes would decide the point.

    `log_ratios` hold the fastest's log ratios to each rival, one per process.
    """
    if not log_ratios:
        return [None], None
    change = means(log_ratios)
    standings = judged(change)
    if NOT_DECIDED not in standings:
        return [*standings], None
    return [*standings], _further(change)


def judged(log_ratios: Estimates) -> list[str]:
    """Return the standing of the fastest, then that of each rival, from its log ratios to the rivals.

    A winner's rivals are all slower. In a tie, every rival is slower or equivalent, no slower one ranks between two
    that tie, and none is shown to be faster than the fastest. Else the rivals that may not be slower are not decided.
    """
    value, half = log_ratios.value, np.nan_to_num(half_widths(log_ratios), nan=math.inf)
    p_values = p_beyond(log_ratios, math.log1p(MARGIN))
    slower = (holm(p_values) < LEVEL) & (value > 0)
    if slower.all():
        return [WINNER, *[SLOWER] * len(slower)]
    others = TIE if _tie(value, half, slower) else NOT_DECIDED
    return [others, *(SLOWER if is_slower else others for is_slower in slower.tolist())]


def _tie(value: Array, half: Array, slower: Truths) -> bool:
    tied = ~slower
    # the printed interval is within the bounds: stricter than two one-sided tests at 5 %
    equivalent = np.abs(value) + half <= math.log1p(EQUIVALENCE)
    between = slower & (value <= np.max(value[tied]))
    contradicted = value + half < 0
    return bool(equivalent[tied].all() and not between.any() and not contradicted.any())


def _further(now: Estimates) -> int | None:
    """Return about how many further processes would decide the point if means and scatter stay as they are."""
    counts = now.freedom + 1
    sds = now.error * np.sqrt(counts)
    if np.isnan(sds).any():
        return None

    def decides(further: Counts) -> Truths:
        after = counts + further
        return np.array([NOT_DECIDED not in judged(Estimates(now.value, sds / np.sqrt(after), after - 1))])

    (count,) = smallest(decides, 1).tolist()
    return count or None
