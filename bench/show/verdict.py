"""Who is the fastest at a point, in words: the same ones in the table, the live line and the maps."""

from collections.abc import Sequence

from bench.analyse.fastest import ALONE, NOTHING, WITHOUT_INTERVALS, Outcome, outcome
from bench.analyse.ranking import NOT_DECIDED, TIE, WINNER
from bench.show import intervals, units
from bench.show.rows import Row, measured
from bench.show.styles import BAD, GOOD
from bench.stats.estimates import Interval
from bench.stats.limits import EQUIVALENCE

LEAD_DECIMALS = 3
"""A winner may be ahead by little more than a hundredth, and that should not read 1.01."""

MOST_NAMES = 3
"""Names of those that may be the fastest; the rest is counted."""

WITHIN = f"within {units.percent(EQUIVALENCE, trim=True)[:-1]} %"
"""How close those are that tie."""


def verdict(rows: Sequence[Row]) -> Outcome:
    """Return what is known of the fastest among the rows of one point."""
    return outcome(measured(rows))


def words(of: Outcome) -> str:
    """Return it in words: `winner: sdpa, 1.04x [1.02, 1.06] as fast as mha`."""
    if of.says == WINNER and of.relative is not None:
        return f"{short(of).partition(',')[0]}, {ahead(of.relative)} as fast as {of.runner_up}"
    if of.says == NOT_DECIDED and of.further_processes:
        return f"{short(of)} ({further(of.further_processes)} would decide)"
    if of.says == WITHOUT_INTERVALS:
        return f"{short(of)} (one process)"
    return short(of)


def short(of: Outcome) -> str:
    """Return it in few words: `winner: sdpa, 1.04x as fast as mha`, without interval and advice."""
    if of.says == NOTHING:
        return of.says
    if of.says == WINNER and of.relative is not None:
        return f"{of.says}: {of.names[0]}, {units.ratio(of.relative.value)} as fast as {of.runner_up}"
    if of.says == TIE:
        return f"{of.says} ({WITHIN}): {', '.join(of.names)}"
    return f"{of.says}: {any_of(of.names)}"


def any_of(names: Sequence[str]) -> str:
    """Return names of which one is meant: `sdpa, mha or eager`; of many `sdpa, mha, eager or 2 others`."""
    said = [*names] if len(names) <= MOST_NAMES + 1 else [*names[:MOST_NAMES], f"{len(names) - MOST_NAMES} others"]
    *some, last = said
    return f"{', '.join(some)} or {last}" if some else last


def further(processes: int) -> str:
    """Return so many further processes in words."""
    return f"about {processes} more {'process' if processes == 1 else 'processes'}"


def ahead(lead: Interval) -> str:
    """Return how far a winner is ahead, with decimals that tell its lower end from 1."""
    return intervals.ratio(lead, LEAD_DECIMALS, least=2)


def of_verdict(of: Outcome) -> str:
    """Return the style of a verdict: loud only if somebody is shown to be fastest, or nobody was measured."""
    if of.says == NOTHING:
        return BAD
    return GOOD if of.says in (WINNER, TIE, ALONE) else "bold"
