"""The race of a point: when it is answered, who is measured on, and how long that is expected to take."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from bench.analyse.race import BEHIND, Look, behind, look
from bench.stats.contrasts import Contrasts, Values
from bench.stats.replicates import Array

FREEDOM = 12.0
COSTS = {name: place for place, name in enumerate("abcdef")}


def of(*logs: float, error: float | Array = 0.02) -> Contrasts:
    """Return the contrasts of implementations with these log times; each pair has the same error, or one of its own."""
    difference = np.subtract.outer(np.array(logs), np.array(logs))
    errors = np.where(np.eye(len(logs), dtype=bool), 0.0, np.broadcast_to(error, difference.shape))
    return Contrasts(tuple("abcdef"[: len(logs)]), difference, errors, np.full(difference.shape, FREEDOM))


def test_a_point_with_a_fastest_is_answered() -> None:
    """However small the bound is, nothing is left to be measured."""
    found = look(of(0.1, 0.0, 0.2), COSTS, 0.0, 3)
    assert found == Look("b", 0.0, replicates=3)
    assert found.is_answered


def test_a_point_is_answered_when_the_named_one_costs_no_more_than_the_bound() -> None:
    """Two that are as fast as each other can't be told apart; what the named one can cost is known."""
    high = math.exp(float(stats.t.ppf(0.96, FREEDOM)) * 0.01) - 1
    alike = of(0.0, 0.0, error=0.01)
    answered = look(alike, COSTS, 1.001 * high)
    assert (answered.named, answered.left) == ("a", ())
    assert answered.bound == pytest.approx(high)
    assert look(alike, COSTS, 0.999 * high).left == ("a", "b")


def test_those_that_may_be_faster_by_more_than_the_bound_are_left() -> None:
    """The second may be, the third may be faster by less, the last is slower; the named one stays for the ratios."""
    logs, most = (0.0, 0.005, 0.04, 0.5), float(stats.t.ppf(1 - 0.04 / 3, FREEDOM)) * 0.02
    assert most - logs[1] > math.log1p(0.02) > most - logs[2] > 0 > most - logs[3]
    found = look(of(*logs), COSTS, 0.02)
    assert (found.named, found.left, found.is_answered) == ("a", ("a", "b"), False)
    assert found.bound == pytest.approx(math.exp(most - logs[1]) - 1)
    assert look(of(*logs), COSTS, 0.01).left == ("a", "b", "c")


def test_a_model_as_it_is_stays_until_it_is_known_whether_to_change_it() -> None:
    """The named one costs no more than the bound, and the model as it is may be much slower, or as fast."""
    steps = of(0.0, 0.0, 0.03, error=np.array([[0, 0.005, 0.02], [0.005, 0, 0.02], [0.02, 0.02, 0]]))
    assert look(steps, COSTS, 0.02).is_answered
    model = dataclasses.replace(steps, names=("eager", "sdpa", "as_is"))
    costs = {"eager": 1, "sdpa": 2, "as_is": 0}
    found = look(model, costs, 0.02)
    assert (found.named, found.left, found.is_answered) == ("eager", ("eager", "as_is"), False)
    assert look(model, costs, 0.2).is_answered


def test_the_named_one_is_first_wherever_it_stands() -> None:
    """The others keep their order, and each growth is that of the implementation at its place."""
    found = look(of(0.004, 0.008, 0.0), COSTS, 0.02)
    assert found.left == ("c", "a", "b")
    most, near, far = found.growths
    assert most == near > far > 0


def test_after_so_much_more_measuring_a_rival_is_no_longer_left() -> None:
    """An error falls with the root of what is measured; the named one is needed as long as any rival."""
    logs = 0.0, 0.004, 0.008
    _, *growths = look(of(*logs), COSTS, 0.02).growths
    for place, growth in enumerate(growths):
        before, after = (
            look(of(*logs, error=0.02 / math.sqrt(1 + share * growth)), COSTS, 0.02) for share in (0.99, 1.01)
        )
        assert ("bc"[place] in before.left, "bc"[place] in after.left) == (True, False)


@pytest.mark.parametrize("other", [1, 2])
def test_what_is_needed_may_be_unknown(other: int) -> None:
    """The named one seems slower than another by more than the bound: then nobody knows how long it is needed.

    The other one is not named itself, because a third may be much faster than it.
    """
    third, errors = 3 - other, np.full((3, 3), 0.02)
    errors[0, other] = errors[other, 0] = 0.001
    errors[other, third] = errors[third, other] = 0.2
    logs = [0.03, 0.0, 0.0]
    logs[third] = 0.03
    found = look(of(*logs, error=errors), COSTS, 0.02)
    assert found.left == ("a", "b", "c")
    assert np.isnan(found.growths).tolist() == [True, other == 1, other == 2]


def test_without_errors_all_are_left_for_an_unknown_time() -> None:
    """One process names the one that seemed fastest, and says nothing of what that can cost."""
    found = look(of(0.1, 0.0, 0.5, error=math.nan), COSTS, 0.02)
    assert (found.named, found.left) == ("b", ("b", "a", "c"))
    assert np.isnan([found.bound, *found.growths]).all()


@pytest.mark.parametrize("logs", [(), (0.0,)])
def test_without_two_there_is_nothing_to_look_at(logs: tuple[float, ...]) -> None:
    """One alone has no rival, so its point is answered, and nobody is named."""
    found = look(of(*logs), COSTS, 0.02, 2)
    assert (found.named, found.is_answered, found.growths) == ("", True, ())
    assert math.isnan(found.bound)


def test_who_is_far_behind_in_the_first_replicate_is_behind() -> None:
    """A later replicate says nothing of it, and neither does the lack of the first."""
    near, far = math.log(0.99 * BEHIND), math.log(1.01 * BEHIND)
    logs = np.array([[near, far], [0.0, 0.0], [far, 0.0], [math.nan, far]]) + 7.0
    assert behind(Values(tuple("abcd"), logs, np.ones_like(logs))) == {"c"}
    assert behind(Values((), np.empty((0, 0)), np.empty((0, 0)))) == set()
