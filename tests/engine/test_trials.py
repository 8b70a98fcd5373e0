"""Measurements that are no run of a sweep: looks at models, and a self-check."""

import dataclasses
from typing import Any

import pytest

from bench.engine import trials
from bench.engine import trials as engine
from bench.engine.run import Run
from bench.engine.worker import Died
from bench.plan.case import Case, Point
from bench.plan.errors import WrongRequest
from bench.store.record import Record
from tests import examples
from tests.points import point

AT = point(layer="timm:vit_tiny_patch16_224")


class Worker:
    """A process that replies as it was made to."""

    def __init__(self, reply: dict[str, Any] | Died) -> None:
        self.reply = reply
        self.requests: list[dict[str, Any]] = []

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask(self, request: dict[str, Any], _timeout_s: float, _heard: Any) -> dict[str, Any]:
        """Reply, or die."""
        self.requests.append(request)
        if isinstance(self.reply, Died):
            raise self.reply
        return self.reply


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that puts a worker in place of all processes."""

    def replying(reply: dict[str, Any] | Died) -> Worker:
        worker = Worker(reply)

        class Pool:
            def __init__(self, *_: object, libraries: tuple[str, ...]) -> None:
                assert libraries == ("timm",)

            def worker(self, *_: object) -> Worker:
                return worker

            def close(self) -> None:
                pass

        monkeypatch.setattr(engine, "Pool", Pool)
        return worker

    return replying


def test_the_first_process_tries_the_settings(pool: Any) -> None:
    """The others only look."""
    worker = pool({"status": "ok", "detail": "", "seen": {"cores": []}})
    seen = engine.look([AT], ("eager",), 3, 10.0)
    assert seen == {AT: [{"cores": []}] * 3}
    assert [request["settings"] for request in worker.requests] == [["eager"], [], []]
    assert worker.requests[0]["point"] == dataclasses.asdict(AT)


@pytest.mark.parametrize("status", ["error", "unsupported"])
def test_a_model_that_can_not_be_used_is_a_wrong_request(pool: Any, status: str) -> None:
    """With the process's own line."""
    pool({"status": status, "detail": "timm has no model", "seen": {}})
    with pytest.raises(WrongRequest, match="timm has no model"):
        engine.look([AT], (), 1, 10.0)


@pytest.mark.parametrize(
    "reply", [{"status": "oom", "detail": "no memory", "seen": {}}, Died("crashed", "no memory", is_outside=True)]
)
def test_a_lack_of_memory_is_none(pool: Any, reply: Any) -> None:
    """The request was right: the machine lacks something."""
    pool(reply)
    with pytest.raises(engine.NotSeen, match="no memory"):
        engine.look([AT], (), 1, 10.0)


class Scripted(Run):
    """A run without processes, each of whose measurements takes ten seconds of a clock that it keeps."""

    def __init__(self, threads: tuple[int, ...] = (1, 2)) -> None:
        self.sweep = trials.selfcheck_sweep(threads)
        self.now_s = 0.0
        self.measured: list[tuple[int, int | None]] = []
        self.renewed = 0
        self.run_folder: Any = self

    def measure(self, point: Point, processes: int | None = None) -> list[Record]:
        """Let ten seconds pass."""
        self.now_s += 10
        self.measured.append((point.threads, processes))
        return []

    def renew(self) -> None:
        """Count how often fresh processes are asked for."""
        self.renewed += 1

    def of(self, point: Point) -> list[Record]:
        """Return the records of a point, as its run folder does: all are good, but for the unlike kernel's."""
        cases = [Case(point, name) for name in self.sweep.implementations]
        return [examples.record(case=at, status="error" if at.implementation == "sdpa" else "ok") for at in cases]


@pytest.fixture
def run() -> Scripted:
    """Return a run that needs nothing but its clock: 40 seconds for each process."""
    return Scripted()


def test_eager_and_its_copy_are_measured_with_each_number_of_threads() -> None:
    """The article's two points, once for each."""
    sweep = trials.selfcheck_sweep([1, 2])
    assert sweep.implementations == ("eager", trials.TWIN, "sdpa")
    assert sweep.baseline == "eager"
    assert [(point.num_heads, point.threads) for point in sweep.points] == [(1, 1), (1, 2), (4, 1), (4, 2)]


def test_it_begins_no_process_that_would_end_too_late(run: Scripted) -> None:
    """In 170 seconds there is room for four processes of 40, and not for a fifth."""
    assert list(trials.measure_selfcheck(run, 170, lambda: run.now_s)) == [1, 2, 3, 4]
    assert run.renewed == 4
    assert [processes for _, processes in run.measured] == [number for number in (1, 2, 3, 4) for _ in range(4)]


def test_it_measures_no_more_than_a_claim_needs(run: Scripted) -> None:
    """With all the time in the world it ends after ten processes."""
    assert list(trials.measure_selfcheck(run, 1e9, lambda: run.now_s))[-1] == trials.SELFCHECK_PROCESSES


def test_the_fewest_that_tell_a_scatter_are_measured_in_any_case(run: Scripted) -> None:
    """A slow machine takes longer rather than to say nothing."""
    assert list(trials.measure_selfcheck(run, 0, lambda: run.now_s)) == [1, 2, 3]


def test_records_are_those_of_each_point_by_implementation(run: Scripted) -> None:
    """What could not be measured is left out."""
    found = trials.measured_records(run)
    assert [*found] == [*run.sweep.points]
    for at, by_name in found.items():
        assert {name: [record.case for record in own] for name, own in by_name.items()} == {
            name: [Case(at, name)] for name in ("eager", trials.TWIN)
        }
