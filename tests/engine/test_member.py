"""What a process claims is compared with what was seen."""

import pytest

from bench.engine.member import Claims


def sampled(claimed_s: float, waited_s: float, count: int = 5, used_s: float | None = None) -> Claims:
    """Return the claims of a process after as many samples, to which nothing was objected."""
    claims = Claims()
    for _ in range(count):
        assert claims.add(claimed_s, waited_s) == ""
        assert claims.add_work(claimed_s if used_s is None else used_s, 0.0) == ""
    return claims


def test_honest_samples_have_no_objection() -> None:
    """A pipe and the change of inputs take a little of the time."""
    assert sampled(0.010, 0.012).of_all(threads=1) == ""


def test_more_time_than_has_passed_is_an_objection() -> None:
    """No process can have worked longer than the engine waited for it."""
    assert "came after 0.01 s" in Claims().add(0.011, 0.010)


@pytest.mark.parametrize(("honest", "objects"), [(2, True), (3, False)])
def test_half_of_the_samples_must_fill_the_time(honest: int, objects: bool) -> None:
    """Interruptions excuse less than half of five samples."""
    claims = sampled(0.1, 0.1, honest)
    for _ in range(5 - honest):
        claims.add(0.001, 0.1)
    assert ("clock disagrees" in claims.of_all(threads=1)) is objects


@pytest.mark.parametrize(("queued_s", "objects"), [(0.0, True), (0.08, False)])
def test_time_in_the_queue_for_a_core_is_no_lie(queued_s: float, objects: bool) -> None:
    """Beside busy processes a sample of 10 ms may come after 100 ms, of which the system counts 80 as waiting."""
    claims = Claims()
    for _ in range(5):
        assert claims.add(0.01, 0.1, queued_s) == ""
    assert ("clock disagrees" in claims.of_all(threads=1)) is objects


def test_more_cores_than_threads_are_an_objection() -> None:
    """Twice the time on one thread is the work of two cores; two threads may do it."""
    claims = sampled(0.1, 0.1, used_s=0.2)
    assert "worked on 2.0 cores, and threads is 1" in claims.of_all(threads=1)
    assert claims.of_all(threads=2) == ""


def test_work_between_samples_is_an_objection_at_once() -> None:
    """A little is allowed: 30 ms at first, a millisecond for each sample, and a quarter of the work in samples."""
    claims = sampled(0.1, 0.1, 4)
    assert claims.add_work(0.0, 0.134 - 1e-9) == ""
    assert "worked between its samples" in claims.add_work(0.0, 0.001)
