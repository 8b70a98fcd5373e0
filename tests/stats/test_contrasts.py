"""The one error of a point, held against least squares written out, Smyth's formulas, and simulated truth."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import special, stats

from bench.stats.contrasts import (
    Common,
    Contrasts,
    Prior,
    Values,
    common,
    contrasts,
    normal_scores,
    own_errors,
    prior,
    values,
    widening,
)
from bench.stats.estimates import Array, Estimates, t_quantile

CONTROL = ("control", "a")
EXACT = Prior(0.0, Common(1.0, math.inf, math.inf))
"""Nothing but the variances that rounds predict, which are taken as known."""


def of(logs: Array, variances: float | Array = 1e-5, names: Sequence[str] = "abcdef") -> Values:
    """Return the values of a point, an implementation in a row, that lack a variance where they lack a value."""
    shown = np.where(np.isnan(logs), np.nan, np.broadcast_to(variances, np.shape(logs)))
    return Values(tuple(names[: len(logs)]), np.asarray(logs, dtype=np.float64), shown)


def some_lack(rng: np.random.Generator) -> Values:
    """Return values of five implementations in six replicates, a third of them missing, of unlike variances."""
    logs = np.where(rng.random((5, 6)) < 1 / 3, np.nan, rng.normal(0, 1, (5, 6)))
    logs[:, 0] = rng.normal(0, 1, 5)
    return of(logs, rng.uniform(0.1, 2, (5, 6)))


# the values


def test_a_value_is_relative_to_the_level_of_its_rounds() -> None:
    """Rounds drift over a factor of 30; the ratios are exact, though sdpa left early and mha lacks a replicate."""
    drift = np.array([1.0, 1.5, 9.0, 0.7, 20.0, 2.0])
    taken = {"eager": (4.0, 3, 6), "sdpa": (2.0, 3, 3), "mha": (5.0, 2, 6)}
    point = values({
        name: {number: dict(enumerate(value_s * (1 + number) * drift[:rounds])) for number in range(replicates)}
        for name, (value_s, replicates, rounds) in taken.items()
    })  # fmt: skip
    assert point.logs[0] - point.logs[1] == pytest.approx([math.log(2)] * 3)
    assert point.logs[2] - point.logs[0] == pytest.approx([math.log(1.25)] * 2 + [math.nan], nan_ok=True)
    assert np.isnan(point.logs).tolist() == np.isnan(point.variances).tolist()


def test_rounds_that_something_disturbed_do_not_move_a_value() -> None:
    """A quarter of an implementation's rounds may take a hundred times as long."""
    rng = np.random.default_rng(1)
    plain = {name: dict(enumerate(np.exp(rng.normal(0, 0.01, 20)))) for name in "abcd"}
    disturbed = {**plain, "a": {at: value * (100 if at % 4 == 0 else 1) for at, value in plain["a"].items()}}
    one, other = (values({name: {0: own} for name, own in rounds.items()}).logs for rounds in (plain, disturbed))
    assert other[0, 0] - other[1, 0] == pytest.approx(one[0, 0] - one[1, 0], abs=0.01)


@pytest.mark.parametrize("count", [10, 40])
def test_the_variance_of_a_value_is_that_of_its_rounds(count: int) -> None:
    """Of two implementations in 300 replicates: ratios scatter as the rounds predict, and rounds as they are drawn."""
    logs = np.random.default_rng(count).normal(0, 0.03, (2, 300, count))
    times_s = {
        name: {number: dict(enumerate(rounds)) for number, rounds in enumerate(np.exp(own))}
        for name, own in zip("ab", logs, strict=True)
    }
    point = values(times_s)
    predicted = point.variances.mean(axis=1).sum()
    assert np.var(point.logs[0] - point.logs[1]) == pytest.approx(predicted, rel=0.3)
    assert predicted == pytest.approx(2 * 0.03**2 / count * 1.0932**2, rel=0.2)  # a midmean's error over a mean's


# the differences


def test_differences_and_errors_are_those_of_weighted_least_squares() -> None:
    """Of replicates and implementations as columns of a design, solved by numpy."""
    point = some_lack(np.random.default_rng(4))
    row, column = np.nonzero(~np.isnan(point.logs))
    design = np.hstack([np.eye(5)[row], np.eye(6)[column]]) / np.sqrt(point.variances[row, column])[:, None]
    inverse = np.linalg.pinv(design.T @ design)
    solved = inverse @ design.T @ (point.logs[row, column] / np.sqrt(point.variances[row, column]))
    of_all = contrasts(point, EXACT)
    assert point.freedom == len(design) - np.linalg.matrix_rank(design)
    for one, other in [(0, 1), (2, 4), (3, 0)]:
        pair = np.eye(11)[one] - np.eye(11)[other]
        assert of_all.difference[one, other] == pytest.approx(pair @ solved)
        assert of_all.error[one, other] == pytest.approx(math.sqrt(pair @ inverse @ pair))


def test_what_no_chain_of_replicates_joins_has_no_difference() -> None:
    """Two pairs without a shared replicate each have a degree of freedom; a replicate of b and c joins all."""
    pair = np.array([[0.0, 0.1, np.nan, np.nan], [1.0, 1.1, np.nan, np.nan]])
    logs = np.vstack([pair, pair[:, ::-1] + 2])
    separate = contrasts(of(logs), EXACT)
    assert np.isnan(separate.difference).tolist() == np.isnan(separate.error).tolist()
    assert np.isnan(separate.difference[0]).tolist() == [False, False, True, True]
    assert of(logs).freedom == 2
    chained = np.hstack([logs, [[np.nan], [5.0], [5.5], [np.nan]]])
    assert not np.isnan(contrasts(of(chained), EXACT).difference).any()


def test_a_choice_of_implementations_keeps_their_differences() -> None:
    """In the order that is asked for; a speed-up is the baseline's time over the implementation's."""
    of_all = contrasts(some_lack(np.random.default_rng(5)), EXACT)
    kept = of_all.only(["d", "a"])
    assert (kept.names, kept.difference[0, 1]) == (("d", "a"), of_all.difference[3, 0])
    assert of_all.without("c").names == ("a", "b", "d", "e")
    assert of_all.speedup("d", baseline="a").value == of_all.difference[0, 3]


# the errors


def test_one_replicate_has_no_error_and_two_have_one_through_the_run() -> None:
    """Alone a pair in two replicates has one degree of freedom; a run with more points gives it more."""
    rng = np.random.default_rng(6)
    one, *more = [of(rng.normal(0, 0.01, (2, count))) for count in (1, *[2] * 100)]
    pooled = prior([one, *more])
    assert math.isnan(contrasts(one, pooled).error[0, 1])
    assert not math.isnan(contrasts(one, pooled).difference[0, 1])
    assert contrasts(more[0], prior(more[:1])).freedom[0, 1] == 1
    assert 2 < contrasts(more[0], pooled).freedom[0, 1] <= 100


def test_a_noisy_row_keeps_an_error_of_its_own() -> None:
    """A row of six scatters ten times as much at each of 30 points, and its error says so; the others' stay small."""
    rng = np.random.default_rng(7)
    points = [of(rng.normal(0, [[0.01]] * 5 + [[0.1]], (6, 4))) for _ in range(30)]
    pooled = prior(points)
    errors = np.mean([contrasts(each, pooled).error for each in points], axis=0)
    assert errors[5, :5].min() > 3 * errors[:5, :5].max()
    assert errors[0, 1] < 2 * math.sqrt(2 * 0.01**2 / 4)


@pytest.mark.parametrize("replicates", [2, 4])
def test_hundreds_of_rounds_in_few_processes_claim_no_more_than_processes_allow(replicates: int) -> None:
    """Values that agree to 0.001 % keep an error of 0.3 % for each process."""
    points = [of(np.random.default_rng(seed).normal(0, 1e-5, (4, replicates)), 1e-10) for seed in range(10)]
    error = contrasts(points[0], prior(points)).error[0, 1]
    assert error >= 0.999 * 0.003 * math.sqrt(2 / replicates)
    alone = points[0].__class__(("a", "b"), points[0].logs[:2], points[0].variances[:2])
    assert contrasts(alone, prior([alone])).error[0, 1] == pytest.approx(0.003 * math.sqrt(2 / replicates))


@pytest.mark.parametrize(("off", "least", "most"), [(0.0, 1.0, 1.3), (0.05, 5.0, 12.0)])
def test_a_control_that_differs_widens_all_errors(off: float, least: float, most: float) -> None:
    """The control is 5 % slower in each of 20 points, where errors of 0.7 % are claimed.

    Without it nothing is widened.
    """
    rng = np.random.default_rng(8)
    logs = rng.normal(0, 0.01, (20, 4, 4)) + np.array([[0], [off], [0], [0]])
    points = [of(own, names=("a", "control", "b", "c")) for own in logs]
    plain, widened = prior(points), prior(points, CONTROL)
    assert least <= widened.factor <= most
    assert plain.factor == prior(points, ("control", "missing")).factor == 1
    ratio = contrasts(points[0], widened).error[2, 3] / contrasts(points[0], plain).error[2, 3]
    assert ratio == pytest.approx(widened.factor)


@pytest.mark.parametrize(
    ("scores", "factor"),
    [
        ([], 1.0),
        ([0.5] * 10, 1.0),
        ([1.3] * 10, 1.109),  # the root of (20 + 16.9) / 30: such a sum of squares comes in 8 % of runs
        ([-2.0] * 10, 2.0),  # one of 40 comes in 2 of 100,000
        ([2.0], 1.069),  # the root of (20 + 4) / 21: 5 %
    ],
)
def test_what_may_be_chance_widens_errors_by_less(scores: list[float], factor: float) -> None:
    """A control at few points is far off now and then although errors are right; they are never made smaller."""
    assert widening(np.array(scores)) == pytest.approx(factor, abs=5e-4)


# the moderated variance


def test_a_variance_is_shrunk_as_smyth_says() -> None:
    """Three degrees of freedom at 4 and five common ones at 1 are eight at 17/8; all have no more than all together."""
    moderated = Common(1.0, 5.0, 100.0).moderate(np.array([4.0, 9.9]), np.array([3.0, 0.0]))
    assert [each.tolist() for each in moderated] == [[17 / 8, 1.0], [8.0, 5.0]]
    assert Common(1.0, math.inf, 40.0).moderate(np.array([4.0]), np.array([3.0]))[1] == 40
    nothing, freedom = Common(1.0, 0.0, 40.0).moderate(np.array([4.0]), np.array([0.0]))
    assert (math.isnan(nothing[0]), freedom[0]) == (True, 0)


def test_what_variances_have_in_common_solves_smyths_equations() -> None:
    """The mean and the variance of e = log s² - ψ(d/2) + log(d/2) are those of Smyth (2004), section 6.2."""
    rng = np.random.default_rng(9)
    freedoms = rng.integers(1, 6, 50).astype(np.float64)
    variances = 0.3 * stats.f.rvs(freedoms, 4, random_state=rng)
    estimate = common(variances, freedoms)
    e = np.log(variances) - special.digamma(freedoms / 2) + np.log(freedoms / 2)
    trigamma = special.polygamma(1, [estimate.freedom / 2, *freedoms / 2])
    assert trigamma[0] == pytest.approx(e.var(ddof=1) - trigamma[1:].mean())
    half = estimate.freedom / 2
    assert math.log(estimate.variance) == pytest.approx(e.mean() + special.digamma(half) - math.log(half))
    assert estimate.most_freedom == freedoms.sum()
    assert common(np.append(variances, 1e9), np.append(freedoms, 0.0)) == estimate


@pytest.mark.parametrize("freedom", [1.0, 4.0, 15.0])
def test_the_variance_and_the_freedom_that_were_drawn_come_back(freedom: float) -> None:
    """Of 4000 variances of three degrees of freedom each, about 0.3 times an inverse χ²."""
    estimate = common(stats.f.rvs(3, freedom, size=4000, random_state=10) * 0.3, np.full(4000, 3.0))
    assert (estimate.variance, estimate.freedom) == pytest.approx((0.3, freedom), rel=0.25)


def test_variances_that_differ_by_chance_alone_are_one() -> None:
    """They give infinite degrees of freedom; one variance, or none, gives nothing."""
    quantiles = stats.chi2.ppf(np.linspace(0.1, 0.9, 20), 3) / 3
    assert common(quantiles, np.full(20, 3.0)).freedom == math.inf
    assert common(np.array([2.0]), np.array([3.0])).freedom == common(np.array([]), np.array([])).freedom == 0


# the level


def test_a_score_is_as_improbable_as_its_t_value() -> None:
    """Printed 97.5 % points of t with 2 and 10 degrees of freedom are 1.96; values without an error are left out."""
    columns = np.array([[4.303, -2.228, 1.0], [1.0, 1.0, np.nan], [2.0, 10.0, 3.0]])
    scores = normal_scores(Estimates(*columns))
    assert scores == pytest.approx([1.96, -1.96], abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("unlike", "places", "replicates"), [(0, 1, 4), (0.5, 1, 4), (0, 1, 2), (0, 8, 4)])
def test_simulated_errors_are_right(unlike: float, places: float, replicates: int) -> None:
    """True differences of 0 have scores with rms 1, and 99 % intervals hold in 99 %.

    Rows scatter equally or not, points equally or up to eightfold, and there are four replicates or two.
    """
    rng, scales = np.random.default_rng(11), np.geomspace(1, places, 200)
    sds = 0.01 * np.exp(rng.normal(0, unlike, (200, 6, 1))) * scales[:, None, None]
    logs = rng.normal(0, sds, (200, 6, replicates))
    points = [of(own, (0.007 * scale) ** 2) for own, scale in zip(logs, scales.tolist(), strict=True)]
    pooled = prior(points)
    pairs = np.triu_indices(6, 1)
    parts = [vars(contrasts(each, pooled)) for each in points]
    names = ("difference", "error", "freedom")
    of_all = Estimates(*(np.concatenate([each[name][pairs] for each in parts]) for name in names))
    assert np.sqrt(np.mean(normal_scores(of_all) ** 2)) == pytest.approx(1, abs=0.08)
    holds = np.abs(of_all.value) < t_quantile(of_all.freedom) * of_all.error
    assert np.mean(holds) == pytest.approx(0.99, abs=0.008)


def test_the_errors_of_two_rows_by_themselves_make_that_of_their_ratio() -> None:
    """They do exactly if the squares of the pairs' errors are sums; a row without a known error has none."""
    own = np.array([0.001, 0.01, 0.02, 0.05])
    pairs = np.sqrt(np.add.outer(own**2, own**2)) * ~np.eye(4, dtype=bool)
    assert own_errors(Contrasts(tuple("abcd"), pairs, pairs, pairs)) == pytest.approx(own)
    pairs[3], pairs[:, 3] = math.nan, math.nan
    assert own_errors(Contrasts(tuple("abcd"), pairs, pairs, pairs)) == pytest.approx([*own[:3], math.nan], nan_ok=True)
    two = np.array([[0.0, 0.02], [0.02, 0.0]])
    assert own_errors(Contrasts(tuple("ab"), two, two, two)) == pytest.approx([0.02 / math.sqrt(2)] * 2)
