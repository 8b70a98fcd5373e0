"""The implementation to use at a point, in a sentence: the same in the table, the live line, the page and the maps.

Bounds are rounded away from what they bound, so that no sentence says more than its numbers.
"""

import math
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from bench.analyse.standing import ALONE, FASTEST, NAMED, NOT_TOLD, NOTHING, Choice, choice
from bench.show.blocks import BAD, GOOD, HEAD
from bench.show.rows import Row, measured
from bench.show.text import counted
from bench.stats.best import GOOD as AS_GOOD
from bench.store import units

MOST_NAMES = 3
"""At most this number of implementations is named; the others are counted."""

MANY = 2.0
"""From this ratio on people read times rather than percent."""

MOST = 1e6
"""A larger number is not written out: the bounds of two processes that differ wildly have no end."""

UNSURE = 1.15
"""A choice that can cost as much as this is hardly better than none."""


def choice_of(rows: Sequence[Row]) -> Choice:
    """Return the implementation to use, by the rows of one point, of which some may be left out."""
    return choice(measured(rows))


def words(of: Choice, width: float = math.inf) -> str:
    """Return what to use and what that can cost, in a sentence that fits into a width if one does.

    `fastest: sdpa, by 2 to 6%`, or `use sdpa: no other is more than 1.6% faster; compiled_sdpa is as good`.
    """
    sentences = [*_sentences(of)]
    return next((each for each in sentences if len(each) <= width), sentences[-1])


def _sentences(of: Choice) -> Iterator[str]:
    """Yield sentences that say the same, the longest first."""
    if of.standing in (NOTHING, NOT_TOLD):
        yield of.standing
    elif of.standing == ALONE:
        yield f"{ALONE}: {of.name}"
    elif of.standing == FASTEST:
        if of.ahead:
            yield f"fastest: {of.name}, {by(of.ahead.low, of.ahead.high)}"
        yield f"fastest: {of.name}"
    elif math.isnan(of.high):
        if of.ahead and of.may_be_faster:
            took = f"{of.may_be_faster[0]} took {units.ratio(of.ahead.value)[:-1]} times as long"
            yield f"use {of.name}: {took} in {counted([of.processes], 'process', 'processes')}, which gives no bound"
        yield f"use {of.name}: no bound"
    elif of.high <= AS_GOOD:
        close = f"use {of.name}: no other is more than {more(of.high)} faster"
        if of.as_good:
            yield f"{close}; {listed(of.as_good)} {'is' if len(of.as_good) == 1 else 'are'} as good"
        yield close
        yield f"use {of.name}: within {more(of.high)}"
    else:
        others = faster(of.high)
        named = f"use {of.name}: {any_of(of.may_be_faster)} {others}"
        if of.further_s:
            yield f"{named}; {duration(of.further_s)} more of measuring would bring that below {more(AS_GOOD)}"
        yield named
        yield f"use {of.name}: others {others}"
        yield f"use {of.name}: others {others.removeprefix('may be ')}"
        yield f"use {of.name}: within {more(of.high)}"


def tone(of: Choice) -> str:
    """Return a good tone if a choice costs next to nothing, a bad one if nothing was measured."""
    if of.standing == NOTHING:
        return BAD
    return GOOD if of.standing == FASTEST or of.high <= AS_GOOD else HEAD


def short(of: Choice) -> list[str]:
    """Return the lines of a cell of a map: the name, and how sure it is."""
    if of.standing in (NOTHING, NOT_TOLD):
        return [of.standing]
    if of.standing == ALONE:
        return [of.name, ALONE]
    if of.standing == FASTEST:
        return [of.name, "fastest", *([by(of.ahead.low, of.ahead.high)] if of.ahead else [])]
    if math.isnan(of.high):
        return [of.name, "no bound"]
    return [of.name, f"within {more(of.high)}"]


def certainty(of: Choice) -> float:
    """Return how sure a choice is, from 0 to 1: that of a fastest one is 1, that of one without a bound 0."""
    if of.standing == FASTEST:
        return 1.0
    if of.standing != NAMED or math.isnan(of.high):
        return 0.0
    return max(0.0, 1 - math.log(of.high) / math.log(UNSURE))


def by(low: float, high: float) -> str:
    """Return by how much one is ahead: `by 2 to 6.1%`, `by over 0 to 6%` or `by 2.1x to 2.6x`."""
    if low >= MANY:
        return f"by {_rounded(low, 1, ROUND_FLOOR)}x to {_rounded(high, 1, ROUND_CEILING)}x"
    least = _percent(low, ROUND_FLOOR)
    return f"by {'over ' if least == '0' and low > 1 else ''}{least} to {_percent(high, ROUND_CEILING)}%"


def faster(ratio: float) -> str:
    """Return how much faster others may be: `may be up to 3.4% faster`, or `may be up to 2.3x as fast`."""
    if ratio >= MANY:
        return f"may be up to {_rounded(ratio, 1, ROUND_CEILING)}x as fast"
    return f"may be up to {more(ratio)} faster"


def more(ratio: float) -> str:
    """Return what a ratio is above 1, rounded up: `3.4%`, whole from 10 % on."""
    return f"{_percent(ratio, ROUND_CEILING)}%"


def duration(seconds: float) -> str:
    """Return a time to wait in few digits: `40 s`, `12 min`, `3 h`."""
    for name, unit_s in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * unit_s:
            return f"{units.significant(seconds / unit_s, digits=2, trim=True)} {name}"
    return f"{max(1, math.ceil(seconds))} s"


def any_of(names: Sequence[str]) -> str:
    """Return names joined by `or`: `sdpa, mha or eager`; for many `sdpa, mha, eager or 2 others`."""
    return _joined(names, "or")


def listed(names: Sequence[str]) -> str:
    """Return names joined by `and`."""
    return _joined(names, "and")


def _joined(names: Sequence[str], last: str) -> str:
    texts = [*names] if len(names) <= MOST_NAMES + 1 else [*names[:MOST_NAMES], f"{len(names) - MOST_NAMES} others"]
    *some, end = texts or ["others"]
    return f"{', '.join(some)} {last} {end}" if some else end


def _percent(ratio: float, towards: str) -> str:
    share = 100 * (ratio - 1)
    return _rounded(share, 0 if share >= 10 else 1, towards)


def _rounded(value: float, digits: int, towards: str) -> str:
    # a float as people read it: 1.1 % is not rounded up to 1.2 % because it is stored as 1.1000000000000001
    if value >= MOST:
        return f"over {MOST:,.0f}"
    step = Decimal(1).scaleb(-digits)
    text = str(Decimal(f"{value:.9g}").quantize(step, rounding=towards))
    return text.rstrip("0").rstrip(".") if "." in text else text
