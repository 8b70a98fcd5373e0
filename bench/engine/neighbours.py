"""The processes of a replicate, and what the one that is asked does to those that wait.

There is no sandbox between them, so each turn ends with a look at the others: what was changed is put back, and the
implementation whose turn it was is named.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from bench.engine.worker import Worker
from bench.machine.quiet import Scheduling, reschedule, scheduling

NEEDED = "one that all need"
"""The name of a process that judges, or that has started others."""

CERTAIN = 2
"""So many deaths of waiting processes in turns of an implementation are its doing: one may be that of the system."""


@dataclass(frozen=True)
class Harm:
    """What was found after a turn: how waiting processes were `changed`, and the names of those that `ended`."""

    changed: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)

    @property
    def words(self) -> str:
        """What happened."""
        names = ", ".join(dict.fromkeys(self.ended))
        ended = f"processes of this run that waited ended: {names}" if names else ""
        return "; ".join(filter(None, [*self.changed, ended]))


class Neighbours:
    """The processes of a replicate by their names, as they were when they were first seen.

    `present` returns those that are there now. `lost` has the name of the implementation whose turn it was for each
    process that can't go on.
    """

    def __init__(self, present: Callable[[], Mapping[Worker, str]]) -> None:
        self.lost: dict[Worker, str] = {}
        self._present = present
        self._noted: dict[Worker, Scheduling] = {}
        self._culprit = ""
        """Whose turn it was when one ended that all need: the ends of others may follow from it."""
        self._limits: dict[Worker, tuple[tuple[int, int], ...]] = {}

    def note(self) -> None:
        """Note how processes are scheduled that are not known yet."""
        for worker in self._present():
            if worker not in self._noted and (now := scheduling(worker.pid)):
                self._noted[worker], self._limits[worker] = now, now.limits

    def let_run_as(self, own: Scheduling) -> None:
        """Let all run with the priority of this process, on the cores that they have."""
        self.note()
        for worker in self._present().keys() & self._noted.keys():
            self._noted[worker] = self._noted[worker]._replace(priority=own.priority, policy=own.policy)
            if (now := scheduling(worker.pid)) and now != self._noted[worker]:
                reschedule(worker.pid, self._noted[worker])

    def move(self, worker: Worker, core: int) -> None:
        """Note that a process runs on another core from now on."""
        if worker in self._noted:
            self._noted[worker] = self._noted[worker]._replace(cores=frozenset({core}))

    def harm(self, asked: Collection[Worker], name: str) -> Harm:
        """Return what happened to processes that were not `asked` in a turn of `name`, after what can be is undone."""
        harm, present = Harm(), self._present()
        for worker in asked:
            self._take_own(worker)
        for worker in [each for each in present if each in self._noted.keys() - self.lost.keys() - {*asked}]:
            before = self._noted[worker]
            worker.settle()
            now = None if worker.has_ended else scheduling(worker.pid)
            if now is None and self._culprit:
                self.lost[worker] = self._culprit  # it needed one that has ended before
            elif now is None:
                self.lost[worker] = name
                harm.ended.append(present[worker])
            elif fields := [each for each in now._fields if getattr(now, each) != getattr(before, each)]:
                harm.changed.append(f"changed how other processes of this run are scheduled: {', '.join(fields)}")
                if not reschedule(worker.pid, before):
                    self.lost[worker] = name
                    worker.end()  # else it would fail as if by its own fault
        harm.changed[:] = dict.fromkeys(harm.changed)
        if NEEDED in harm.ended:
            self._culprit = name
        return harm

    def has_other_limits(self, worker: Worker) -> bool:
        """Return whether a process has other limits than in the beginning."""
        now = scheduling(worker.pid)
        return now is not None and now.limits != self._limits.get(worker, now.limits)

    def _take_own(self, worker: Worker) -> Scheduling | None:
        """Note what a process may change of itself, and return how it is scheduled; None if it isn't known."""
        before, now = self._noted.get(worker), scheduling(worker.pid)
        if before is None or now is None:
            return None
        self._noted[worker] = before._replace(cores=now.cores, limits=now.limits, oom=now.oom)
        return now

    def change(self, worker: Worker) -> str:
        """Return how the process that was asked changed its own scheduling, after that is undone.

        Its cores are for that process to compare, because it is moved; its limits are its own.
        """
        now = self._take_own(worker)
        if now is None:
            return ""
        before = self._noted[worker]
        fields = [each for each in now._fields if getattr(now, each) != getattr(before, each)]
        if fields:
            reschedule(worker.pid, before)
        return f"changed how its process is scheduled: {', '.join(fields)}" if fields else ""
