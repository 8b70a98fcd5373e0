"""What a self-check says of a machine."""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from bench.analyse.selfcheck import CLAIM, PROCESSES, Finding, as_state, findings
from bench.plan.case import Case, Point
from bench.stats.limits import MARGIN
from tests.examples import record, timed
from tests.points import point

ONE, TWO = point(num_heads=1), point(num_heads=1, threads=2)
EVEN = [0.001, -0.001, 0.002, 0.0, -0.002, 0.0]
"""Log ratios of processes that differ no more from one occasion to the next than within one."""

UNLIKE = [0.0, 0.001, 0.05, 0.051, 0.02, 0.021]
"""Those of three occasions of two processes, which differ by 2 to 5 %."""


def checked(points: Mapping[Point, Sequence[float]], rounds: float = 0.0) -> list[Finding]:
    """Return the findings of points at which a copy of sdpa has these log ratios to it, one for each process.

    Five rounds scatter by `rounds`.
    """
    rng = np.random.default_rng(1)
    records = {
        at: {
            name: [
                record(case=Case(at, name), process=n, samples=timed(*np.exp(log + rng.normal(0, rounds, 5)).tolist()))
                for n, log in enumerate(own)
            ]
            for name, own in {"sdpa": [0.0] * len(logs), "copy": [-log for log in logs]}.items()
        }
        for at, logs in points.items()
    }
    return findings(records, "sdpa", "copy")


def test_each_number_of_threads_is_a_finding_of_its_own() -> None:
    """Points with as many threads are taken together; one process tells nothing, and no points are no finding."""
    other, alone = (dataclasses.replace(ONE, num_heads=heads) for heads in (3, 4))
    one, two = checked({TWO: UNLIKE, ONE: EVEN, other: [0.01, 0.03, 0.02, 0.02], alone: [0.1]})
    assert (one.threads, one.processes, two.threads, two.processes) == (1, 4, 2, 6)
    assert list(one.ratios) == [ONE, other]
    assert one.ratios[other].value == pytest.approx(math.exp(0.02))
    assert one.ratios[other].low < math.exp(0.02) < one.ratios[other].high
    assert checked({}) == checked({alone: [0.1]}) == []


def test_more_scatter_and_fewer_processes_leave_larger_changes_undetected() -> None:
    """Thirty times the scatter leaves three times the change; processes don't help against a between-run component."""
    quiet, loud, unlike = (checked({ONE: logs})[0] for logs in (EVEN, [30 * log for log in EVEN], UNLIKE))
    assert list(quiet.detectable) == list(PROCESSES)
    for each in (quiet, loud, unlike):
        assert sorted(each.detectable.values(), reverse=True) == list(each.detectable.values())
    assert loud.detectable[CLAIM] > 3 * quiet.detectable[CLAIM]
    assert quiet.between_runs.sd < 0.001
    assert unlike.between_runs.sd == pytest.approx(0.0252, abs=0.001)  # the standard deviation of 0, 0.05 and 0.02
    twice, once = ([each.detectable[count] - MARGIN for each in (unlike, quiet)] for count in (2 * CLAIM, CLAIM))
    assert twice[0] > 0.95 * once[0]
    assert twice[1] == pytest.approx(once[1] * math.sqrt(0.5), rel=0.01)


def test_the_share_of_the_variance_that_comes_from_rounds() -> None:
    """None if rounds agree, and most of it if processes differ by no more than their rounds do."""
    agree, scatter = (checked({ONE: [0.0] * 6}, rounds)[0].rounds_share for rounds in (0.0, 0.05))
    assert agree == 0
    assert 0.9 < scatter < 1


def test_a_copy_that_differs_is_unsound() -> None:
    """A machine on which the same code differs by 5 % in every process supports no claim."""
    assert [checked({ONE: [off + log for log in EVEN]})[0].is_sound for off in (0.0, 0.05)] == [True, False]


def test_what_an_environment_keeps_is_short() -> None:
    """By threads: the detectable change for a claim, and the between-run component if three processes or more tell."""
    one, two = checked({ONE: [0.0, 0.001], TWO: UNLIKE})
    assert as_state([one, two]) == {
        "detectable": {"1": round(one.detectable[CLAIM], 4), "2": round(two.detectable[CLAIM], 4)},
        "between": {"2": [round(two.between_runs.sd, 5), round(two.between_runs.freedom, 1)]},
        "processes": 10,
    }
