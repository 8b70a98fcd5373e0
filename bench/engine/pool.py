"""The worker processes of a run: each imports torch once, stays, and takes its turn."""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.engine.worker import Died, Worker
from bench.plan.case import Point

MODULE = "bench.measure.worker"
"""What a worker process runs; it is named, not imported, because it imports torch."""


WARM_S = 300.0
"""The longest that the first use of the compiler may take."""

Key = tuple[str, int, int]
"""Allocator, threads, and the number of the process."""


class Pool:
    """Workers by the settings that a process must be started with, `size` of each.

    They are started side by side; those that will compile then use the toolchain, one of them before the rest.
    """

    def __init__(self, size: int, implementations: Sequence[str], devices: Sequence[str]) -> None:
        self.size = size
        self.implementations = implementations
        self.devices = devices
        self.start_up_s = 0.0
        self._workers: dict[Key, Worker] = {}
        self._cache = tempfile.TemporaryDirectory(prefix="attention-bench-compiled-")

    def worker(self, point: Point, number: int) -> Worker:
        """Return the worker whose turn it is, all of the point's workers started together at first need.

        Raises Died when one doesn't come up.
        """
        keys = [(point.allocator, point.threads, index) for index in range(self.size)]
        fresh = [key for key in keys if key not in self._workers]
        begin = time.monotonic()
        for key in fresh:
            self._workers[key] = Worker(point.allocator, point.threads, Path(self._cache.name), MODULE)
        try:
            for group in (fresh[:1], fresh[1:]):  # what the first compiles, the others find in the cache
                for key in group:
                    self._workers[key].ready()
                    self._workers[key].post(self._warming)
                for key in group:
                    self._workers[key].answer(WARM_S)
        except Died:
            for key in fresh:
                self._workers.pop(key).close()
            raise
        self.start_up_s += time.monotonic() - begin
        return self._workers[keys[number % self.size]]

    def memory_worker(self, threads: int) -> Worker:
        """Return the worker that gives freed memory back at once, started at first need.

        Raises Died when it doesn't come up.
        """
        key = ("returned", threads, 0)
        if key not in self._workers:
            self._workers[key] = Worker("returned", threads, Path(self._cache.name), MODULE)
            try:
                self._workers[key].ready()
            except Died:
                self._workers.pop(key).close()
                raise
        return self._workers[key]

    def replace(self, worker: Worker) -> None:
        """Close a worker that died; the next one who needs it starts another."""
        worker.close()
        self._workers = {key: other for key, other in self._workers.items() if other is not worker}

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers.values():
            worker.close()
        self._workers.clear()
        self._cache.cleanup()

    @property
    def _warming(self) -> dict[str, Any]:
        return {"request": "warm", "implementations": self.implementations, "devices": self.devices}
