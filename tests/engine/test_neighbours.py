"""What one process does to those that wait is undone where it can be, and named."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from bench.engine.neighbours import NEEDED, Neighbours

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how other processes are scheduled")


@dataclass(eq=False)
class Sleeper:
    """A process that waits; it has what `Neighbours` asks of a worker."""

    process: "subprocess.Popen[bytes]" = field(default_factory=lambda: subprocess.Popen(["sleep", "60"]))

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self.process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self.process.poll() is not None

    def settle(self) -> None:
        """Give it time to follow a signal."""
        time.sleep(0.02)

    def end(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()


@pytest.fixture
def present() -> Iterator[dict[Sleeper, str]]:
    """Yield two rows and a process that all need."""
    sleepers = {Sleeper(): "eager", Sleeper(): "sdpa", Sleeper(): NEEDED}
    yield sleepers
    for each in sleepers:
        each.end()


@pytest.fixture
def neighbours(present: dict[Sleeper, str]) -> Neighbours:
    """Return the look at them, after their first turn."""
    neighbours = Neighbours(lambda: present)  # type: ignore[arg-type, return-value]
    neighbours.note()
    return neighbours


def _named(present: dict[Sleeper, str], name: str) -> Sleeper:
    return next(each for each, own in present.items() if own == name)


def test_an_honest_turn_harms_nobody(present: dict[Sleeper, str], neighbours: Neighbours) -> None:
    """So it is said to have no words."""
    harm = neighbours.harm([_named(present, "eager")], "eager")  # type: ignore[list-item]
    assert harm.words == ""
    assert not neighbours.lost


def _lower(pid: int) -> None:
    os.setpriority(os.PRIO_PROCESS, pid, 5)


def _limit(pid: int) -> None:
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, hard))


def _stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)


def _move(pid: int) -> None:
    os.sched_setaffinity(pid, {min(os.sched_getaffinity(pid))})


def _offer(pid: int) -> None:
    with open(f"/proc/{pid}/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123
        file.write("900")


@pytest.mark.parametrize(
    ("change", "named"),
    [(_lower, "priority"), (_limit, "limits"), (_stop, "stopped"), (_move, "cores"), (_offer, "oom")],
)
def test_a_change_of_one_that_waits_is_named_and_undone(
    change: Callable[[int], None], named: str, present: dict[Sleeper, str], neighbours: Neighbours
) -> None:
    """It can go on then, and is nobody's loss."""
    if change is _move and len(os.sched_getaffinity(0)) == 1:
        pytest.skip("there is one core")
    if change is _lower and os.geteuid():
        pytest.skip("only root can raise the priority again")
    attacked = _named(present, "sdpa")
    change(attacked.pid)
    harm = neighbours.harm([_named(present, "eager")], "eager")  # type: ignore[list-item]
    assert len(harm.changed) == 1
    assert named in harm.changed[0]
    assert not neighbours.lost
    assert not neighbours.harm([], "nobody").words


def test_who_asked_may_change_its_own_cores_but_not_its_priority(
    present: dict[Sleeper, str], neighbours: Neighbours
) -> None:
    """Its cores are compared in the process itself, which is moved from core to core."""
    own = _named(present, "eager")
    _move(own.pid)
    assert neighbours.change(own) == ""  # type: ignore[arg-type]
    os.setpriority(os.PRIO_PROCESS, own.pid, 5)
    assert "priority" in neighbours.change(own)  # type: ignore[arg-type]


def test_the_end_of_one_that_waits_is_the_doing_of_whose_turn_it_was(
    present: dict[Sleeper, str], neighbours: Neighbours
) -> None:
    """It is not looked for again in the next turn."""
    ended = _named(present, "sdpa")
    ended.end()
    harm = neighbours.harm([_named(present, "eager")], "eager")  # type: ignore[list-item]
    assert harm.ended == ["sdpa"]
    assert neighbours.lost[ended] == "eager"  # type: ignore[index]
    assert len(neighbours.lost) == 1
    assert neighbours.harm([], "sdpa").words == ""


def test_ends_that_follow_from_the_end_of_one_that_all_need_are_of_the_same_doing(
    present: dict[Sleeper, str], neighbours: Neighbours
) -> None:
    """A server takes those with it that it has started."""
    _named(present, NEEDED).end()
    neighbours.harm([_named(present, "eager")], "eager")  # type: ignore[list-item]
    ended = _named(present, "sdpa")
    ended.end()
    assert neighbours.harm([], "online").words == ""
    assert neighbours.lost[ended] == "eager"  # type: ignore[index]


def test_a_limit_of_its_own_is_found(present: dict[Sleeper, str], neighbours: Neighbours) -> None:
    """Then a failure is perhaps not its own."""
    own = _named(present, "eager")
    assert not neighbours.has_other_limits(own)  # type: ignore[arg-type]
    _limit(own.pid)
    assert neighbours.has_other_limits(own)  # type: ignore[arg-type]
