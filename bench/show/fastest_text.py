"""The fastest implementation at a point as text: the same in the table, the progress line and the maps."""

from collections.abc import Sequence

from bench.analyse.fastest import NOTHING, WITHOUT_INTERVALS, Outcome, outcome
from bench.analyse.ranking import NOT_DECIDED, TIE, WINNER
from bench.show import intervals
from bench.show.rows import Row, measured
from bench.stats.estimates import Interval
from bench.stats.limits import EQUIVALENCE
from bench.store import units

RATIO_DECIMALS = 3
"""A winner may be ahead by little more than a hundredth, which 1.01 would hide."""

MOST_NAMES = 3
"""At most this number of possible winners is named; the others are counted."""

WITHIN = f"within {units.percent(EQUIVALENCE, trim=True)[:-1]} %"
"""How close implementations are that tie."""


def outcome_of(rows: Sequence[Row]) -> Outcome:
    """Return the outcome among the rows of one point."""
    return outcome(measured(rows))


def words(outcome: Outcome) -> str:
    """Return an outcome in words: `winner: sdpa, 1.04x [1.02, 1.06] as fast as mha`."""
    if outcome.says == WINNER and outcome.relative is not None:
        return f"{short(outcome).partition(',')[0]}, {ahead(outcome.relative)} as fast as {outcome.runner_up}"
    if outcome.says == NOT_DECIDED and outcome.further_processes:
        return f"{short(outcome)} ({further(outcome.further_processes)} would decide)"
    if outcome.says == WITHOUT_INTERVALS:
        return f"{short(outcome)} (one process)"
    return short(outcome)


def short(outcome: Outcome) -> str:
    """Return an outcome in few words: `winner: sdpa, 1.04x as fast as mha`, without interval and advice."""
    if outcome.says == NOTHING:
        return outcome.says
    if outcome.says == WINNER and outcome.relative is not None:
        relative = units.ratio(outcome.relative.value)
        return f"{outcome.says}: {outcome.names[0]}, {relative} as fast as {outcome.runner_up}"
    if outcome.says == TIE:
        return f"{outcome.says} ({WITHIN}): {', '.join(outcome.names)}"
    return f"{outcome.says}: {any_of(outcome.names)}"


def any_of(names: Sequence[str]) -> str:
    """Return names joined by `or`: `sdpa, mha or eager`; for many `sdpa, mha, eager or 2 others`."""
    words = [*names] if len(names) <= MOST_NAMES + 1 else [*names[:MOST_NAMES], f"{len(names) - MOST_NAMES} others"]
    *some, last = words
    return f"{', '.join(some)} or {last}" if some else last


def further(processes: int) -> str:
    """Return a number of further processes in words."""
    return f"about {processes} more {'process' if processes == 1 else 'processes'}"


def ahead(ratio: Interval) -> str:
    """Return how many times as fast a winner is, with enough decimals to tell the interval's lower end from 1."""
    return intervals.ratio(ratio, RATIO_DECIMALS, least=2)
