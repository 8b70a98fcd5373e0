"""The worker processes of a run: each imports torch once, stays, and takes its turn."""

import time
from collections.abc import Sequence
from typing import Any

from bench.engine.scratch import Scratch
from bench.engine.worker import Died, Heard, Worker, unheard
from bench.plan.case import Point
from bench.plan.errors import WrongRequest

MODULE = "bench.measure.worker"
"""What a worker process runs; it is named, not imported, because it imports torch."""

COMPILED = "compiled"
"""The folder in which what a worker compiled is found by the others."""

WARM_S = 300.0
"""The longest that the first use of the compiler may take."""

CHECK_S = 120.0
"""The longest that importing the implementations may take."""

Key = tuple[str, int, int]
"""Allocator, threads, and the number of the process."""


class Pool:
    """Workers by the settings that a process must be started with, `size` of each.

    They are started side by side; those that will compile then use the toolchain, one of them before the rest.
    `python` is the interpreter of another environment, None this one.
    """

    def __init__(
        self, size: int, implementations: Sequence[str], devices: Sequence[str], python: str | None = None
    ) -> None:
        self.size = size
        self.implementations = implementations
        self.devices = devices
        self.python = python
        self.start_up_s = 0.0
        self._workers: dict[Key, Worker] = {}
        self._starting: list[Key] = []
        self._scratch = Scratch()

    def start(self, point: Point) -> None:
        """Start all of the point's workers that aren't there, and wait for none of them."""
        for index in range(self.size):
            key = (point.allocator, point.threads, index)
            if key not in self._workers:
                self._workers[key] = self._started(point.allocator, point.threads)
                self._starting.append(key)

    def worker(self, point: Point, number: int, heard: Heard = unheard) -> Worker:
        """Return the worker whose turn it is, all of the point's workers started together at first need.

        Raises Died when one doesn't come up.
        """
        begin = time.monotonic()
        self.start(point)
        fresh, self._starting = self._starting, []
        try:
            for group in (fresh[:1], fresh[1:]):  # what the first compiles, the others find in the cache
                for key in group:
                    self._workers[key].ready(heard)
                    self._workers[key].post(self._warming)
                for key in group:
                    self._workers[key].answer(WARM_S, heard)
        except Died:
            for key in fresh:
                self._workers.pop(key).close()
            raise
        self.start_up_s += time.monotonic() - begin
        return self._workers[self._key(point, number)]

    def check(self, point: Point, implementations: Sequence[str] = ()) -> dict[str, Any]:
        """Return what a worker's torch says of the machine.

        If a worker is killed from outside meanwhile, all are started once more.
        Raises WrongRequest if no worker comes up, or if one can't import an implementation that is asked for.
        """
        request = {"request": "check", "implementations": implementations}
        try:
            answer = self.worker(point, 0).ask(request, CHECK_S)
        except Died as first:
            if not first.is_outside:
                raise _not_started(first) from None
            self.renew()
            try:
                answer = self.worker(point, 0).ask(request, CHECK_S)
            except Died as second:
                raise _not_started(second) from None
        if answer["objections"]:
            raise WrongRequest("; ".join(answer["objections"]))
        facts: dict[str, Any] = answer["facts"]
        return facts

    def memory_worker(self, threads: int) -> Worker:
        """Return the worker that gives freed memory back at once, started at first need.

        Raises Died when it doesn't come up.
        """
        key = ("returned", threads, 0)
        if key not in self._workers:
            self._workers[key] = self._started("returned", threads)
            try:
                self._workers[key].ready()
            except Died:
                self._workers.pop(key).close()
                raise
        return self._workers[key]

    def retire(self, point: Point, number: int) -> None:
        """Close the worker whose turn it is, so that the next one who has this turn is a fresh one."""
        self.replace(self._workers[self._key(point, number)])

    def replace(self, worker: Worker) -> None:
        """Close a worker that died; the next one who needs it starts another."""
        worker.close()
        self._workers = {key: other for key, other in self._workers.items() if other is not worker}

    def renew(self) -> None:
        """End all workers, so that fresh ones come next; what was compiled stays in the cache."""
        for worker in self._workers.values():
            worker.close()
        self._workers.clear()
        self._starting.clear()

    def close(self) -> None:
        """End all workers, and remove what they left in temporary files."""
        self.renew()
        self._scratch.close()

    def _key(self, point: Point, number: int) -> Key:
        return point.allocator, point.threads, number % self.size

    def _started(self, allocator: str, threads: int) -> Worker:
        return Worker(allocator, threads, self._scratch.folder / COMPILED, MODULE, self.python)

    @property
    def _warming(self) -> dict[str, Any]:
        return {"request": "warm", "implementations": self.implementations, "devices": self.devices}


def _not_started(death: Died) -> WrongRequest:
    return WrongRequest(f"no worker process could be started: {death.detail}")
