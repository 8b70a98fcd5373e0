"""A worker process seen from its parent: started, asked, waited for, replaced."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[2]
"""The checkout: what a worker of another environment imports of ours."""

START_S = 120.0
"""The longest that importing torch may take."""

ALLOCATOR_VARIABLES = {
    "retained": {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(16 << 30)},
    "system": {},
    "returned": {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"},
}
"""What glibc reads at the start of a process; `retained` never gives freed memory back, so no page faults twice,
and `returned` gives it back at once, so that the system sees what is held: for looking at memory, not for timing.
"""


class Died(Exception):  # noqa: N818 - an outcome that the engine turns into a row
    """A worker ended or fell silent; says which implementation it was at, and how it ended."""

    def __init__(self, status: str, implementation: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.implementation = implementation
        self.detail = detail


class Worker:
    """A process that imports torch once and serves requests until it is closed.

    `python` is the interpreter of another environment, which has packages of its own; None is this one.
    """

    def __init__(self, allocator: str, threads: int, cache: Path, module: str, python: str | None = None) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
        self._breadcrumb = tempfile.NamedTemporaryFile(prefix="attention-bench-")  # noqa: SIM115
        self._buffer = b""
        self._process = subprocess.Popen(
            [python or sys.executable, "-m", module, self._breadcrumb.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment(allocator, threads, cache, python),
            start_new_session=True,  # Ctrl-C is for the parent, which then closes its workers
        )

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def ready(self) -> None:
        """Wait until the worker has imported torch; raises Died when it doesn't come up."""
        self.answer(START_S)

    def ask(self, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Send a request and return the answer; raises Died after `timeout_s` without a sign of life."""
        self.post(request)
        return self.answer(timeout_s)

    def post(self, request: dict[str, Any]) -> None:
        """Send a request whose answer is waited for later; raises Died when there is nobody to read it."""
        self._leave_no_crumb()
        try:
            self._pipe_in.write(json.dumps(request).encode() + b"\n")
            self._pipe_in.flush()
        except BrokenPipeError:
            raise self._died() from None

    def answer(self, timeout_s: float) -> dict[str, Any]:
        """Return the answer to what was posted; each sign of life starts the clock anew."""
        while True:
            event: dict[str, Any] = json.loads(self._line(timeout_s))
            if event["event"] != "working":
                return event

    def close(self) -> None:
        """End the process and everything it started."""
        if self._process.poll() is None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors, self._breadcrumb):
            if stream is not None:
                _close_quietly(stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _pipe_in(self) -> Any:
        return self._process.stdin

    def _line(self, timeout_s: float) -> bytes:
        deadline = time.monotonic() + timeout_s
        descriptor = self._process.stdout.fileno()  # type: ignore[union-attr]  # opened as a pipe above
        while b"\n" not in self._buffer:
            readable, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            if not readable:
                raise self._silent(timeout_s)
            chunk = os.read(descriptor, 1 << 20)
            if not chunk:
                raise self._died()
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _silent(self, timeout_s: float) -> Died:
        implementation, stage = self._crumb()
        self.close()
        return Died("timeout", implementation, f"no sign of life for {timeout_s:g} s during {stage}")

    def _died(self) -> Died:
        code = self._process.wait()
        implementation, stage = self._crumb()
        last = self._last_error()
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit status {code}"
        hint = ", as the kernel does when memory runs out" if code == -signal.SIGKILL else ""
        return Died("crashed", implementation, f"{how}{hint} during {stage}{last}")

    def _leave_no_crumb(self) -> None:
        os.pwrite(self._breadcrumb.fileno(), b" " * 512, 0)

    def _crumb(self) -> tuple[str, str]:
        content = os.pread(self._breadcrumb.fileno(), 512, 0).strip()
        implementation, stage = json.loads(content) if content else ("", "start")
        return implementation, stage

    def _last_error(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").splitlines()
        # the profiler of some builds of torch writes lines of its own that begin so
        spoken = [line.strip() for line in lines if line.strip() and not line.startswith("USDT")]
        return f": {spoken[-1]}" if spoken else ""


def environment(allocator: str, threads: int, cache: Path, python: str | None = None) -> dict[str, str]:
    """Return the variables that a worker starts with; an allocator setting of the user's own is taken out."""
    malloc = [name for variables in ALLOCATOR_VARIABLES.values() for name in variables]
    inherited = {name: value for name, value in os.environ.items() if name not in malloc}
    return {
        **inherited,
        **ALLOCATOR_VARIABLES[allocator],
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "PYTHONPATH": os.pathsep.join(_path() if python is None else _path_elsewhere()),
        "PYTHONUNBUFFERED": "1",
        "TORCHINDUCTOR_CACHE_DIR": str(cache),
    }


def _path() -> list[str]:
    return [entry or str(Path.cwd()) for entry in sys.path]


def _path_elsewhere() -> list[str]:
    """Return where another environment looks before its own packages: our packages must not get in there."""
    asked = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    return list(dict.fromkeys([str(Path.cwd()), str(ROOT), *asked]))


def _close_quietly(stream: Any) -> None:
    with contextlib.suppress(BrokenPipeError):
        stream.close()
