"""What a self-check says of a machine."""

import dataclasses
import functools
import math

import pytest

from bench.analyse.selfcheck import CLAIM, PROCESSES, Finding, as_state, findings
from bench.stats.power import TABLES, detectable
from tests.points import point

QUIET = [0.001, -0.001, 0.002, 0.0, -0.002]
NOISY = [20 * value for value in QUIET]
APART = [[[0.0, 0.001], [0.05, 0.051], [0.02, 0.021]]]
"""A row of three occasions that differ by more than their processes."""

LOGS = {
    point(num_heads=1, threads=2): NOISY,
    point(num_heads=1): QUIET,
    point(num_heads=3): QUIET,
    point(num_heads=4): [0.1],
}

ERRORS = {point(num_heads=1): [0.0005, 0.001], point(num_heads=1, threads=2): [0.1]}


@functools.cache
def found() -> tuple[Finding, Finding]:
    """Return the findings of one thread and of two."""
    one, two = findings(LOGS, {point(num_heads=1, threads=2): APART}, ERRORS)
    return one, two


def test_each_number_of_threads_is_a_finding_of_its_own() -> None:
    """Points with as many threads are taken together; one process tells nothing, and no ratios are no finding."""
    one, two = found()
    assert (one.threads, two.threads) == (1, 2)
    assert [at.num_heads for at in one.ratios] == [1, 3]
    assert two.sd == pytest.approx(20 * one.sd)
    assert one.processes == len(QUIET)
    assert findings({point(): []}, {}, {}) == []


def test_a_finding_says_what_would_be_detected() -> None:
    """More scatter and fewer processes leave larger changes undetected."""
    one, two = found()
    assert one.detectable == {count: detectable(one.sd, count) for count in PROCESSES}
    assert two.detectable == {count: detectable(two.sd, count, between_sd=two.between.sd) for count in PROCESSES}
    assert two.detectable[CLAIM] > detectable(two.sd, CLAIM) > one.detectable[CLAIM]
    assert one.redrawn[CLAIM].rows == 2 * TABLES


def test_the_part_of_the_variance_that_comes_from_rounds_is_told() -> None:
    """It is the mean square of their errors over the variance of processes, at most all of it."""
    one, two = found()
    assert one.sd**2 == pytest.approx(1e-5 / 4)  # the squares of QUIET add up to 1e-5, and its mean is 0
    assert one.rounds_share == pytest.approx(6.25e-7 / 2.5e-6)
    assert two.rounds_share == 1.0
    (unknown,) = findings({point(): QUIET}, {}, {})
    assert math.isnan(unknown.rounds_share)


def test_what_is_remembered_is_short() -> None:
    """The state holds the detectable change for a claim by threads, and the false alarms of as many processes."""
    one, two = found()
    assert as_state([one, two]) == {
        "detectable": {"1": round(one.detectable[CLAIM], 4), "2": round(two.detectable[CLAIM], 4)},
        "between": {"2": [round(two.between.sd, 5), round(two.between.freedom, 1)]},
        "false_alarms": sum(finding.redrawn[CLAIM].false_alarms for finding in found()),
        "rows": 3 * TABLES,
        "processes": CLAIM,
    }


def test_more_alarms_than_allowed_are_unsound() -> None:
    """A machine whose unchanged tables raise alarms in 2 % of cases supports no claim."""
    one, _ = found()
    assert one.is_sound
    alarmed = dataclasses.replace(one.redrawn[CLAIM], tables_with_alarm=TABLES // 50)
    assert not dataclasses.replace(one, redrawn={**one.redrawn, CLAIM: alarmed}).is_sound
