"""Who is the fastest at a point: the one definition, by ratios that are paired round by round.

Every pair of implementations is compared by one value per process: the median over the rounds that both were in of
the logarithm of their ratio. The fastest is the one that beats every other by the mean of these values.

Each rival is tested against the fastest by a t test over processes, with Holm's correction (1979) for their number.
The same data choose the fastest and test it. But a wrong winner has to beat the true fastest, and if two tie, either
may do so: that is why the test counts two tails. That is enough for values with equal scatter (Gutmann and Maymin 1987,
Hung and Fithian 2019); for unequal scatter `tests/analyse/test_ranking.py` holds the rate by simulation.
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
the first is faster. Each pair stands in it once, and each name with itself too."""


@dataclass(frozen=True)
class Place:
    """An implementation among those of its point; `rank` is 1 for the fastest.

    `relative` is its time relative to the fastest, None if they never were in the same round.
    `standing` is WINNER if it is shown to be faster than every other by more than the margin, SLOWER if it is shown to
    be slower than the fastest by more than the margin, TIE if it is within 2 % of the fastest and all others are
    slower, else NOT_DECIDED. It is None without a rival.
    `further_processes` is the number of processes that would decide the point, None if it is decided, if no
    reasonable number would, or if nothing is known of the scatter.
    """

    rank: int
    relative: Estimate | None
    standing: str | None
    further_processes: int | None = None


def ranked(names: Sequence[str], pairs: Pairs, log_times: Mapping[str, float]) -> dict[str, Place]:
    """Return the place of each implementation, the fastest first.

    `log_times` order those that never were in the same round; of two such nothing is shown.
    """
    if not names:
        return {}
    values = _values(names, pairs)
    advantages = _advantages(names, values, log_times)
    first = int(np.argmax(np.min(advantages, axis=1)))
    order = sorted(range(len(names)), key=lambda index: (index != first, advantages[first, index]))
    log_ratios = [values[names[first], names[index]] for index in order]
    standings, further = _standings(log_ratios[1:])
    return {
        names[index]: Place(rank, ratio(logs) if logs else None, standing, further if standing == NOT_DECIDED else None)
        for rank, (index, logs, standing) in enumerate(zip(order, log_ratios, standings, strict=True), start=1)
    }


def _values(names: Sequence[str], pairs: Pairs) -> dict[tuple[str, str], Sequence[float]]:
    """Return the values of every ordered pair."""
    return {
        (one, other): pairs[one, other] if (one, other) in pairs else [-value for value in pairs[other, one]]
        for one, other in itertools.product(names, repeat=2)
    }


def _advantages(
    names: Sequence[str], values: Mapping[tuple[str, str], Sequence[float]], log_times: Mapping[str, float]
) -> Array:
    """Return by how much each row is faster than each column, as logarithms.

    The fastest has no negative value in its row. Medians can go round in a circle, so that no row is like that:
    then `ranked` chooses the row whose smallest value is the largest.
    """
    return np.array(
        [
            [
                float(np.mean(values[one, other])) if values[one, other] else log_times[other] - log_times[one]
                for other in names
            ]
            for one in names
        ]
    )


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

    A winner's rivals are all slower. A tie needs every rival to be slower or equivalent, nobody who is slower to
    stand between two that tie, and nobody to be shown faster than the fastest. Else nothing is decided between those
    that aren't shown to be slower.
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
    # the interval that is printed lies within the bounds: stricter than two one-sided tests at 5 %
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
