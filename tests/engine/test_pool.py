"""The workers of a run: how many stand by, and when fresh ones come."""

import os
import signal
from collections.abc import Iterator

import pytest

from bench.engine import pool
from bench.engine.pool import Pool
from bench.engine.worker import Died
from bench.plan.errors import WrongRequest
from tests.points import point

pytestmark = pytest.mark.slow


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    """Return a pool of two scripted workers for each setting."""
    monkeypatch.setattr(pool, "MODULE", "tests.engine.scripted_worker")
    made = Pool(2, ["eager"], ["cpu"])
    yield made
    made.close()


def test_workers_take_turns_and_are_fresh_after_a_renewal(two: Pool) -> None:
    """The third process of a point is the first worker again, until all are renewed."""
    first = [two.worker(point(), number).pid for number in range(3)]
    assert first[0] == first[2] != first[1]
    two.renew()
    assert not {two.worker(point(), number).pid for number in range(2)} & set(first)


def test_starting_waits_for_nobody(two: Pool) -> None:
    """Workers that were started before are those that come."""
    two.start(point())
    started = {worker.pid for worker in two._workers.values()}
    assert len(started) == 2
    assert {two.worker(point(), number).pid for number in range(2)} == started


def test_a_worker_that_does_not_come_up_is_tried_again(two: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left of those that were started beside it."""
    monkeypatch.setattr(pool, "MODULE", "tests.engine.no_such_worker")
    with pytest.raises(Died, match="No module named"):
        two.worker(point(), 0)
    monkeypatch.setattr(pool, "MODULE", "tests.engine.scripted_worker")
    assert two.worker(point(), 0).pid


def test_a_kill_from_outside_at_the_start_is_made_good(two: Pool) -> None:
    """All workers are started once more, and the machine is described."""
    two.start(point())
    killed = [worker.pid for worker in two._workers.values()]
    os.kill(killed[0], signal.SIGKILL)
    assert two.check(point())
    assert killed[0] not in {worker.pid for worker in two._workers.values()}


def test_a_worker_that_can_not_start_is_a_wrong_request(two: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request is refused with the worker's last words."""
    monkeypatch.setattr(pool, "MODULE", "tests.engine.no_such_worker")
    with pytest.raises(WrongRequest, match="No module named"):
        two.check(point())
