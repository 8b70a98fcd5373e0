"""The worker processes of a run: each imports torch once and then measures whenever it is its turn."""

import time
from collections.abc import Sequence
from typing import Any

from bench.engine.scratch import Scratch
from bench.engine.worker import Died, Heard, Worker, unheard
from bench.plan.case import Point
from bench.plan.errors import WrongRequest

MODULE = "bench.measure.worker"
"""The module of a worker process; it is not imported here, because it imports torch."""

COMPILED = "compiled"
"""The folder of the compiler's cache, which all workers share."""

WARM_S = 300.0
"""The most seconds for the first use of the compiler."""

CHECK_S = 120.0
"""The most seconds for importing the implementations."""

Key = tuple[str, int, int]
"""Allocator, threads, and the number of the process."""


class Pool:
    """The workers of a run: `size` processes for each combination of settings that hold from the start of a process.

    They start in parallel. Then they use the toolchain if something compiles, the first one before the others.
    `python` is the interpreter of another environment, None means this one.
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
        """Start all workers of the point that don't exist yet, without waiting for them."""
        for index in range(self.size):
            key = (point.allocator, point.threads, index)
            if key not in self._workers:
                self._workers[key] = self._started(point.allocator, point.threads)
                self._starting.append(key)

    def worker(self, point: Point, number: int, heard: Heard = unheard) -> Worker:
        """Return the worker for a process of the point; at the first call all of the point's workers start together.

        Raises Died if one doesn't start.
        """
        begin = time.monotonic()
        self.start(point)
        fresh, self._starting = self._starting, []
        try:
            for group in (fresh[:1], fresh[1:]):  # the others find in the cache what the first has compiled
                for key in group:
                    self._workers[key].ready(heard)
                    self._workers[key].post(self._warming)
                for key in group:
                    self._workers[key].receive(WARM_S, heard)
        except Died:
            for key in fresh:
                self._workers.pop(key).close()
            raise
        self.start_up_s += time.monotonic() - begin
        return self._workers[self._key(point, number)]

    def check(self, point: Point, implementations: Sequence[str] = ()) -> dict[str, Any]:
        """Return the facts about the machine that a worker's torch knows.

        If a worker is killed from outside meanwhile, all are started once more.
        Raises WrongRequest if no worker starts, or if one can't import one of the given implementations.
        """
        request = {"request": "check", "implementations": implementations}
        try:
            reply = self.worker(point, 0).ask(request, CHECK_S)
        except Died as first:
            if not first.is_outside:
                raise _not_started(first) from None
            self.renew()
            try:
                reply = self.worker(point, 0).ask(request, CHECK_S)
            except Died as second:
                raise _not_started(second) from None
        if reply["mistakes"]:
            raise WrongRequest("; ".join(reply["mistakes"]))
        facts: dict[str, Any] = reply["facts"]
        return facts

    def memory_worker(self, threads: int) -> Worker:
        """Return the worker that returns freed memory at once, started at its first use.

        Raises Died if it doesn't start.
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
        """Close the worker for a process of the point, so that its next process is a fresh one."""
        self.replace(self._workers[self._key(point, number)])

    def replace(self, worker: Worker) -> None:
        """Close a worker; another one starts when it is needed."""
        worker.close()
        self._workers = {key: other for key, other in self._workers.items() if other is not worker}

    def renew(self) -> None:
        """End all workers, so that fresh ones start next; the compiler's cache stays."""
        for worker in self._workers.values():
            worker.close()
        self._workers.clear()
        self._starting.clear()

    def close(self) -> None:
        """End all workers, and remove their temporary files."""
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
