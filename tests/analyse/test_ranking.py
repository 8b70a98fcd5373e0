"""Who is the fastest, and how sure that is."""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.analyse.ranking import NOT_DECIDED, SLOWER, TIE, WINNER, Pairs, Place, judged, ranked
from bench.stats.estimates import Estimates

POINTS = 4000
"""Simulated points of each kind: a rate of 1 % then scatters by 0.16 %."""


def pairs(logs: Mapping[str, Sequence[float]]) -> Pairs:
    """Return the paired values of implementations whose log times in each process are these."""
    return {
        (one, other): [b - a for a, b in zip(logs[one], logs[other], strict=True)]
        for one, other in itertools.combinations_with_replacement(logs, 2)
    }


def places(logs: Mapping[str, Sequence[float]]) -> dict[str, Place]:
    """Return the places of implementations whose log times in each process are these."""
    return ranked(list(logs), pairs(logs), dict.fromkeys(logs, 0.0))


def standings(logs: Mapping[str, Sequence[float]]) -> dict[str, str | None]:
    """Return what is said of each implementation."""
    return {name: place.standing for name, place in places(logs).items()}


def about(middle: float, scatter: float = 0.001, processes: int = 5) -> list[float]:
    """Return values with this mean and this standard deviation, another pattern for another mean."""
    raw = np.random.default_rng(round(abs(middle) * 1e6)).normal(0, 1, processes)
    return list(middle + scatter * (raw - raw.mean()) / raw.std(ddof=1))


def test_the_winner_is_shown_to_be_faster_than_every_other() -> None:
    """Ten and twenty percent with a scatter of a tenth of a percent: one winner, and who is slower by how much."""
    found = places({"eager": about(0.2), "sdpa": about(0.0), "mha": about(0.1)})
    assert [(name, place.rank, place.standing) for name, place in found.items()] == [
        ("sdpa", 1, WINNER),
        ("mha", 2, SLOWER),
        ("eager", 3, SLOWER),
    ]
    relative = found["mha"].relative
    assert relative is not None
    assert relative.value == pytest.approx(math.exp(0.1))
    assert relative.low < math.exp(0.1) < relative.high
    assert found["sdpa"].relative is not None
    assert (found["sdpa"].relative.low, found["sdpa"].relative.high) == (1.0, 1.0)
    assert {place.further_processes for place in found.values()} == {None}


def test_a_tie_is_shown_and_the_rest_is_slower() -> None:
    """Half a percent apart within a tenth, or 0.6 % beyond doubt, is a tie; who is ten percent slower isn't in it."""
    found = standings({"eager": about(0.1), "sdpa": about(0.0), "mha": about(0.005)})
    assert found == {"sdpa": TIE, "mha": TIE, "eager": SLOWER}
    assert set(standings({"sdpa": about(0.0, 1e-4), "mha": about(0.006, 1e-4)}).values()) == {TIE}


def test_what_is_neither_is_not_decided_and_says_what_would_decide_it() -> None:
    """Three percent with a scatter of three over five processes: so many more processes would show it."""
    found = places({"sdpa": [0.0] * 5, "mha": about(0.03, 0.03), "eager": about(0.5)})
    assert [place.standing for place in found.values()] == [NOT_DECIDED, NOT_DECIDED, SLOWER]
    further = found["mha"].further_processes
    assert further == found["sdpa"].further_processes
    assert found["eager"].further_processes is None
    assert further is not None

    def later(processes: int) -> list[str]:
        of = Estimates(np.array([0.03]), np.array([0.03 / math.sqrt(processes)]), np.array([processes - 1.0]))
        return judged(of)

    assert later(5 + further) == [WINNER, SLOWER]
    assert later(5 + further - 1) == [NOT_DECIDED, NOT_DECIDED]


def test_one_that_is_open_keeps_a_tie_from_being_called() -> None:
    """Two are shown to be within 2 % of the fastest, of the third nothing is known: each may be the fastest."""
    found = standings({"sdpa": [0.0] * 5, "mha": about(0.002), "flex": about(0.01, 0.05), "eager": about(0.5)})
    assert found == {"sdpa": NOT_DECIDED, "mha": NOT_DECIDED, "flex": NOT_DECIDED, "eager": SLOWER}


def test_a_tie_leaves_out_nobody_who_stands_between_two_of_its_members() -> None:
    """The second is shown to be slower; the third, further away, only to be within 2 %: that is no tie."""
    value, error = np.array([0.0159, 0.016]), np.array([1e-6, 8.7e-4])
    assert judged(Estimates(value, error, np.array([2.0, 2.0]))) == [NOT_DECIDED, SLOWER, NOT_DECIDED]


def test_the_fastest_is_never_slower_than_another_in_their_own_rounds() -> None:
    """By the ratio to the baseline compiled_sdpa is faster, against each other sdpa is: the pair decides."""
    values = {
        ("eager", "eager"): [0.0] * 5,
        ("eager", "sdpa"): about(-0.100),
        ("eager", "compiled_sdpa"): about(-0.102),
        ("sdpa", "sdpa"): [0.0] * 5,
        ("sdpa", "compiled_sdpa"): about(0.017),
        ("compiled_sdpa", "compiled_sdpa"): [0.0] * 5,
    }
    names = ("eager", "sdpa", "compiled_sdpa")
    assert next(iter(ranked(names, values, dict.fromkeys(names, 0.0)))) == "sdpa"


def test_a_circle_has_the_fastest_that_loses_least_and_no_winner() -> None:
    """Medians can go round: a beats b, b beats c, c beats a by the least. Then nothing is shown."""
    values = {("a", "b"): about(0.05), ("b", "c"): about(0.05), ("a", "c"): about(-0.02)}
    own = {(name, name): [0.0] * 5 for name in "abc"}
    found = ranked("abc", {**values, **own}, dict.fromkeys("abc", 0.0))
    assert next(iter(found)) == "a"
    assert found["a"].standing == NOT_DECIDED
    assert found["c"].standing == NOT_DECIDED


def test_what_was_never_in_the_same_round_is_ordered_and_not_judged() -> None:
    """Two that were measured in other processes have no ratio; their times order them."""
    own = {(name, name): [0.0] * 5 for name in "ab"}
    found = ranked("ab", {("a", "b"): [], **own}, {"a": 0.5, "b": 0.0})
    assert list(found) == ["b", "a"]
    assert [place.standing for place in found.values()] == [NOT_DECIDED] * 2
    assert (found["a"].relative, found["a"].further_processes) == (None, None)


@pytest.mark.parametrize("logs", [{"a": [0.0], "b": [0.5]}, {"a": [0.0] * 3, "b": [0.5] * 3}])
def test_without_scatter_nothing_is_decided(logs: dict[str, list[float]]) -> None:
    """One process tells no scatter, nor do processes that agree exactly."""
    found = places(logs)
    assert {place.standing for place in found.values()} == {NOT_DECIDED}
    assert {place.further_processes for place in found.values()} == {None}


def test_without_a_rival_there_is_no_standing() -> None:
    """One alone is the first of one, and nothing more; nobody at all has no place."""
    (place,) = places({"eager": about(0.0)}).values()
    assert (place.rank, place.standing) == (1, None)
    assert ranked([], {}, {}) == {}


TRUTHS = {
    "two tied, wide": ([0.0, 0.0], [0.05, 0.05]),
    "two at the margin, narrow": ([0.0, math.log(1.01)], [0.003, 0.003]),
    "two tied before a field": ([0.0, 0.0, 0.5, 0.5, 0.5], [0.05] * 5),
    "one noisy among seven": ([0.0] * 7, [0.3, *[0.01] * 6]),
    "six at the margin": ([0.0, *[math.log(1.01)] * 5], [0.003] * 6),
}
"""Log times of which no winner is right, and the scatter of each."""


@pytest.mark.slow
@pytest.mark.parametrize("processes", [3, 5, 10])
@pytest.mark.parametrize("name", list(TRUTHS))
def test_a_wrong_winner_is_rare(name: str, processes: int) -> None:
    """At most 1 % of points where nobody is faster by more than the margin get a winner; chance (3 sd) adds 0.5 %."""
    truth, scatter = TRUTHS[name]
    drawn = np.random.default_rng(processes).normal(truth, scatter, (POINTS, processes, len(truth)))
    assert sum(WINNER in said(logs) for logs in drawn) <= 0.015 * POINTS


@pytest.mark.slow
@pytest.mark.parametrize("processes", [3, 5, 10])
def test_a_wrong_tie_is_rare(processes: int) -> None:
    """At most 2.5 % of pairs that are 2 % apart are called a tie: the printed interval has to lie within 2 %."""
    drawn = np.random.default_rng(processes).normal([0.0, math.log(1.02)], 0.003, (POINTS, processes, 2))
    assert sum(TIE in said(logs) for logs in drawn) <= 0.033 * POINTS


@pytest.mark.parametrize(("truth", "expected"), [([0.0, 0.1, 0.1], WINNER), ([0.0, 0.003, 0.1], TIE)])
def test_what_is_plain_is_found(truth: list[float], expected: str) -> None:
    """The rule isn't right by saying nothing: 10 % ahead, or 0.3 % apart, is found by ten processes in 95 of 100."""
    drawn = np.random.default_rng(1).normal(truth, 0.01 if expected == WINNER else 0.005, (300, 10, 3))
    assert sum(expected in said(logs) for logs in drawn) >= 0.95 * 300


def said(logs: npt.NDArray[np.float64]) -> set[str]:
    """Return what is said of the implementations of a point, given log times by process and implementation.

    Where ratios are differences of times, the fastest is the one with the least mean.
    """
    first = int(np.argmin(logs.mean(axis=0)))
    log_ratios = np.delete(logs - logs[:, [first]], first, axis=1)
    count = len(log_ratios)
    error = log_ratios.std(axis=0, ddof=1) / math.sqrt(count)
    return {*judged(Estimates(log_ratios.mean(axis=0), error, np.full(log_ratios.shape[1], count - 1.0)))}


logs_of_points = st.integers(2, 6).flatmap(
    lambda processes: st.dictionaries(
        st.sampled_from("abcdef"),
        st.tuples(st.floats(0, 0.06), st.sampled_from([1e-4, 2e-3, 2e-2, 0.1]), st.integers(0, 99)).map(
            lambda made: list(np.random.default_rng(made[2]).normal(made[0], made[1], processes))
        ),
        min_size=2,
    )
)


@settings(deadline=None)
@given(logs_of_points)
def test_no_standing_contradicts_its_interval(logs: dict[str, list[float]]) -> None:
    """What the 95 % interval of a row shows agrees with what is said of the row, and the ranks with the ratios."""
    found = places(logs)
    relatives = [place.relative for place in found.values()]
    values = [relative.value for relative in relatives if relative]
    assert len(values) == len(found)
    assert values == sorted(values)
    assert values[0] == 1
    for place, relative in zip(found.values(), relatives, strict=True):
        assert relative is not None
        if place.standing == SLOWER:
            assert relative.low > 1.01
        if place.standing == TIE:
            assert 1 / 1.02 <= relative.low <= relative.high <= 1.02
    said = [place.standing for place in found.values()]
    assert said[0] in (WINNER, TIE, NOT_DECIDED)
    assert {*said[1:]} <= ({SLOWER} if said[0] == WINNER else {SLOWER, said[0]})
    assert said[0] != TIE or said == [TIE] * said.count(TIE) + [SLOWER] * said.count(SLOWER)
    assert said[0] == WINNER or said.count(said[0]) > 1
