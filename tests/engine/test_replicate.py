"""One replicate: requests to processes, checks of a member's claims, and a lack of memory."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pytest

from bench.engine import replicate
from bench.engine.member import Member
from bench.engine.pool import Pool
from bench.engine.replicate import Replicate
from bench.engine.worker import Died, Worker, unheard
from bench.machine import facts, monotonic, quiet, rates
from bench.machine.quiet import Interference
from bench.plan.case import Case, Point
from bench.plan.work import Roof
from bench.sampling.requests import Finish, Prepare, Request, Sample
from bench.sampling.rounds import Length
from tests.engine import threads
from tests.make.points import point

pytestmark = pytest.mark.slow

RULE = Length(0.05, 12)
SHORTEST = Length(0.0, 1)
"""For tests of what comes before and after the rounds."""

GIB = 1 << 30

Measure = Callable[..., dict[str, Member]]


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    """Return a pool of one scripted server, whose workers are threads."""
    threads.use(monkeypatch)
    with closing(Pool(1, [])) as servers:
        yield servers


def measured(
    pool: Pool,
    *implementations: str,
    at: Point | None = None,
    thorough: bool = False,
    seed: int = 1,
    heard: replicate.Heard = unheard,
    length: Length = RULE,
) -> dict[str, Member]:
    """Return the members of one replicate after their measurement; the first one is the baseline."""
    members = {name: Member(Case(at or point(), name), pool, thorough) for name in implementations}
    Replicate([*members.values()], members[implementations[0]], length, seed, 0, heard).measure(60)
    return members


def statuses(members: dict[str, Member]) -> list[str]:
    """Return the statuses of members."""
    return [member.status for member in members.values()]


def test_each_implementation_has_a_process_of_its_own(servers: Pool) -> None:
    """All take samples in the same rounds, and their processes end with the replicate.

    The worst of the first comparisons is reported: here a peaked input's, beside a normal one and alone.
    """
    for thorough in (True, False):
        eager, sdpa = measured(servers, "eager", "sdpa", thorough=thorough).values()
        assert eager.pid != sdpa.pid
        assert eager.samples.rounds[:2] == sdpa.samples.rounds[:2] == (0, 1)
        assert eager.worker is sdpa.worker is None
        assert eager.files == sdpa.files == {}
        assert (eager.metrics["error"], eager.metrics["tolerance"]) == (1e-7, 1e-5)


# The clock and the work of a process


OBJECTIONS = {
    "test:fast_clock": ("error", "so its clock is wrong"),  # it claims more time than the engine waited
    "test:two_cores": ("error", "used 2.0 cores, but threads is 1"),
    "test:loses_a_timing": ("crashed", "sent a sample of 2 timings, expected 3"),
}


def test_samples_that_can_not_be_true_end_the_case(servers: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that lies, work that is not timed and a timing that is missing; the others keep their samples.

    On a GPU the host's time isn't measured, so its work is not judged.
    """
    eager, *others = measured(servers, "eager", *OBJECTIONS).values()
    assert eager.status == "ok"
    assert len(eager.claims.work) >= 5
    for member in others:
        status, words = OBJECTIONS[member.implementation]
        assert member.status == status
        assert words in member.detail
    assert not others[0].samples.rounds
    monkeypatch.setenv("TEST_GPU", "yes")
    for at in (point(threads=2), point(device="cuda")):
        assert statuses(measured(servers, "test:two_cores", at=at)) == ["ok"]


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("test:keeps_one", "handed over 1 items and 0 whole outputs, expected "),
        ("test:keeps_others", "handed over outputs of calls that it was not asked for"),
    ],
)
def test_one_that_hands_over_fewer_or_other_calls_is_incorrect(name: str, detail: str, servers: Pool) -> None:
    """A process draws the outputs that it keeps; the engine knows its keys and the number of outputs."""
    eager, other = measured(servers, "eager", name).values()
    assert (eager.status, other.status) == ("ok", "incorrect")
    assert other.detail.startswith(detail)


def test_an_impossible_time_is_an_error(servers: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rates are measured again before it counts as impossible; only this doubt raises known rates.

    On a busy machine it keeps its time, with a doubt.
    """
    servers.roofs[rates.setting(point())] = Roof(1e8, 1e10)
    eager, other = measured(servers, "eager", "test:impossible", length=SHORTEST).values()
    assert (eager.metrics["flops"], eager.metrics["least_bytes"]) == (1000, 8)
    assert (eager.metrics["ceiling_flops_per_s"], eager.metrics["ceiling_bytes_per_s"]) == (1e8, 1e10)
    assert (eager.status, other.status) == ("ok", "error")
    assert "impossible rate" in other.detail
    assert servers.roofs[rates.setting(point())] == Roof(1e9, 1e10)
    monkeypatch.setattr(Interference, "share", lambda _self: 0.5)
    (doubtful,) = measured(servers, "test:impossible", length=SHORTEST).values()
    assert doubtful.status == "ok"
    assert "perhaps an impossible rate" in doubtful.detail


# The timings of a sample


@pytest.mark.parametrize(("call_s", "count"), [("1e-3", 3), ("0.01", 1)])
def test_all_implementations_have_as_many_timings_as_the_baseline(
    call_s: str, count: int, servers: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If one of two equal implementations had one timing and the other three, their ratio would be wrong."""
    monkeypatch.setenv("TEST_TIMING_S", call_s)
    members = measured(servers, "eager", "test:half")
    counts = {len(timings_s) for member in members.values() for timings_s in member.samples.timings_s}
    assert counts == {count}


# The judge


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_judge_that_dies_costs_one_implementation(place: int, servers: Pool) -> None:
    """The next judge has the expected outputs for the others; no implementation is blamed for the death."""
    names = ["eager", "sdpa"]
    names.insert(place, "test:ends_the_judge")
    members = measured(servers, *names)
    guilty = members.pop("test:ends_the_judge")
    assert statuses(members) == ["ok", "ok"]
    assert guilty.status == "crashed"
    assert guilty.death is not None
    assert guilty.death.is_outside


# Order


def test_processes_are_prepared_in_random_order(servers: Pool) -> None:
    """Each is the first now and then: the later ones were seen to be faster."""

    def first(seed: int) -> str:
        prepared: list[str] = []

        def heard(implementation: str, stage: str) -> None:
            if stage == "preparation":
                prepared.append(implementation)

        measured(servers, "eager", "a", "b", seed=seed, heard=heard, length=SHORTEST)
        assert sorted(prepared) == ["a", "b", "eager"]
        return prepared[0]

    seen: set[str] = set()
    for seed in range(60):  # the system draws the order: in one of ten billion such loops one is never first
        seen.add(first(seed))
        if len(seen) == 3:
            break
    assert seen == {"a", "b", "eager"}


# Others on the machine


@pytest.fixture
def _two_busy_cores(servers: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the clocks of a machine of two cores that are always busy, and look at them beside each sample."""
    monkeypatch.setattr(quiet, "WINDOW_S", 0.0)
    monkeypatch.setattr(facts, "visible_cores", lambda: 2)
    monkeypatch.setattr(facts, "busy_s", lambda: 2 * monotonic.now_s())


@pytest.mark.usefixtures("_two_busy_cores")
@pytest.mark.parametrize(
    ("cpu_s", "is_quiet"),
    [(lambda: 0.0, False), (lambda: 1e6, False), (lambda: 2 * monotonic.now_s(), True)],
    ids=["rests", "worked before", "works"],
)
def test_the_work_of_other_processes_counts(
    cpu_s: Callable[[], float], is_quiet: bool, servers: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The suite's own work doesn't count, and its work before the rounds hides nothing beside any sample."""
    monkeypatch.setattr(Worker, "cpu_s", property(lambda _worker: cpu_s()))
    (member,) = measured(servers, "eager").values()
    assert (max(member.samples.others) < 1) is is_quiet
    assert (min(member.samples.others) > 0.5) is not is_quiet


def test_a_process_that_works_while_it_waits_is_named(servers: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that spins between calls takes a core from the others."""
    start, spinning = Member.start, set[Worker | None]()

    def started(member: Member, number: int) -> None:
        start(member, number)
        spinning.update([member.worker] if member.implementation == "sdpa" else [])

    monkeypatch.setattr(Member, "start", started)
    monkeypatch.setattr(Worker, "cpu_s", property(lambda each: monotonic.now_s() if each in spinning else 0.0))
    eager, sdpa = measured(servers, "eager", "sdpa", length=Length(1.0, 12)).values()
    assert (eager.status, sdpa.status) == ("ok", "ok")
    assert "used 100% of a core while others were timed" in sdpa.detail
    assert eager.detail == ""


# Cores


@dataclass
class Asked:
    """What processes were asked for, and how many prepared or ended at once, by the type of the request."""

    cores: dict[type, list[int | None]] = field(default_factory=lambda: defaultdict(list))
    at_once: dict[type, list[int]] = field(default_factory=lambda: defaultdict(list))
    busy: dict[Worker, int | None] = field(default_factory=dict)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Return the requests to the members' processes on a machine with three cores."""
    seen = Asked()
    post, receive = Worker.post, Worker.receive

    def posting(worker: Worker, request: Request[Any], **named: Any) -> None:
        kind = type(request)
        if isinstance(request, Prepare | Sample | Finish):
            assert request.core is None or request.core not in seen.busy.values()
            seen.busy[worker] = request.core
            seen.cores[kind].append(request.core)
            seen.at_once[kind].append(len(seen.busy))
        try:
            post(worker, request, **named)
        except Died:  # it has ended before, so it takes no core
            seen.busy.pop(worker, None)
            raise

    def receiving(worker: Worker, *arguments: Any) -> Any:
        seen.busy.pop(worker, None)
        return receive(worker, *arguments)

    monkeypatch.setattr(Worker, "post", posting)
    monkeypatch.setattr(Worker, "receive", receiving)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {4, 5, 6}, raising=False)
    return seen


FOUR = ("eager", "a", "b", "c")


def test_members_are_prepared_and_end_one_on_each_core(servers: Pool, asked: Asked) -> None:
    """Samples are taken one at a time, on one core."""
    assert statuses(measured(servers, *FOUR)) == ["ok"] * 4
    assert asked.at_once[Prepare] == asked.at_once[Finish] == [1, 2, 3, 3]
    assert {*asked.at_once[Sample]} == {1}
    assert len({*asked.cores[Sample]}) == 1
    assert {*asked.cores[Prepare]} == {*asked.cores[Finish]} == {4, 5, 6}
    assert not asked.busy


def test_beside_one_that_keeps_its_core_all_stay_on_one(servers: Pool, asked: Asked) -> None:
    """OpenVINO moves its process back to the core on which it was built, which would look like a kernel's hack."""
    assert statuses(measured(servers, "eager", "openvino", "b")) == ["ok"] * 3
    assert len({core for cores in asked.cores.values() for core in cores}) == 1


def test_the_core_of_the_samples_is_another_in_another_replicate(servers: Pool, asked: Asked) -> None:
    """A neighbour then slows all members of a replicate equally, and other replicates differently.

    One core of three stays unseen in 50 replicates once in 200 million times.
    """
    for seed in range(50):
        measured(servers, "eager", seed=seed, length=SHORTEST)
        if {*asked.cores[Sample]} == {4, 5, 6}:
            break
    assert {*asked.cores[Sample]} == {4, 5, 6}


@pytest.mark.parametrize("columns", [{"threads": 2}, {"device": "cuda"}])
def test_members_that_use_more_than_a_core_are_prepared_one_at_a_time(
    columns: dict[str, Any], servers: Pool, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With several threads, or on a GPU, they would slow each other; the system places them."""
    monkeypatch.setenv("TEST_GPU", "yes")
    assert statuses(measured(servers, *FOUR, at=point(**columns))) == ["ok"] * 4
    assert asked.at_once[Prepare] == asked.at_once[Finish] == [1] * 4
    assert {core for cores in asked.cores.values() for core in cores} == {None}


def test_one_that_fails_beside_others_leaves_its_core_to_the_next(servers: Pool, asked: Asked) -> None:
    """As many as there are cores crash, raise or are wrong, and the others are still measured."""
    for seed in range(3):
        members = measured(servers, *FOUR, "test:exits", "test:raises", "test:wrong", seed=seed, length=SHORTEST)
        assert statuses(members) == ["ok"] * 4 + ["crashed", "error", "incorrect"]
    assert (len(asked.at_once[Prepare]), len(asked.at_once[Finish])) == (3 * 7, 3 * 4)
