"""The claims of a process are checked against observations, and its metrics against their types."""

from unittest import mock

import pytest

from bench.engine.claims import Claims
from bench.engine.member import Member
from bench.engine.pool import Pool
from bench.store.record import Samples
from tests.engine.test_run_folder import HERE
from tests.make.records import case, samples


def sampled(claimed_s: float, waited_s: float, count: int = 5, used_s: float | None = None) -> Claims:
    """Return the claims of a process after as many samples, to which nothing was objected."""
    claims = Claims()
    for _ in range(count):
        assert claims.add(claimed_s, waited_s, used_s or claimed_s) == ""
    return claims


@pytest.mark.parametrize(("count", "objects"), [(2, False), (6, True)])
def test_the_cores_of_the_samples_in_the_middle_count(count: int, objects: bool) -> None:
    """They determine the row's time: some of ten samples took a fifth less time, with a quarter more of a core."""
    claims = sampled(0.1, 0.1, 10 - count)
    for _ in range(count):
        claims.add(0.08, 0.08, 0.1)
    assert ("cores, but threads is 1" in claims.of_all(threads=1)) is objects


def test_a_timing_of_one_short_call_is_worked_on_one_core() -> None:
    """The readings around it take longer than the call."""
    claims = sampled(1e-4, 3e-4, used_s=2.5e-4)
    assert claims.of_all(threads=1) == ""


def test_what_cannot_be_is_an_error_row() -> None:
    """A wrong value of a metric ends the case in words, without samples; what else was measured is kept."""
    one = Member(case(), mock.create_autospec(Pool), thorough=False, samples=samples(1.0))
    one.metrics = {"peak_bytes": 7}
    good = one.record(3, "2026-01-31T12:00:00+00:00", 5, HERE)
    one.metrics |= {"host_s": -1.0}
    bad = one.record(3, "2026-01-31T12:00:00+00:00", 5, HERE)
    assert (good.status, good.samples, good.seed, good.process) == ("ok", samples(1.0), 5, 3)
    assert (bad.status, bad.samples) == ("error", Samples())
    assert "host_s" in bad.detail
    assert bad.metrics["peak_bytes"] == 7
