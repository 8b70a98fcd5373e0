"""Implementations that harm those beside them: by signals, limits, files, and what compares outputs.

Each is eager itself, and attacks at a moment of its own. EXPECTED says how each ends; all others must be measured.
"""

import contextlib
import mmap
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
from torch import Tensor, nn

from impls import Adapt
from impls.attend.eager import attend
from tests.make.adapters import HONEST_CALLS, Own, each_call

ENDED = "error: while it was asked, processes of this run that waited ended: "
CHANGED = "error: (while it was asked, )?changed how other processes of this run are scheduled: "

EXPECTED = {
    "kills": ENDED,
    "terminates_one": ENDED,
    "kills_when_made": ENDED,
    "limits_memory": f"{CHANGED}.*limits",
    "limits_memory_when_made": CHANGED,
    "limits_cpu_of_one": CHANGED,
    "is_first_without_memory": CHANGED,
    "writes_into_files": "ok: ",
    "writes_into_memory": "ok: ",
    "puts_folders": "ok: ",
    "empties_caches": "ok: ",
}
"""A pattern for the status and the detail of each: it is named, or it reaches nobody."""


def siblings() -> list[int]:
    """Return the processes that the server of this one has forked."""
    return [each.pid for each in psutil.Process(os.getppid()).children() if each.pid != os.getpid()]


def in_a_call(attack: Callable[[], object]) -> Adapt:
    """Return an implementation that attacks once, in a timed call."""

    def work(own: Own, x: Tensor) -> Tensor:
        if own.calls == 40 * HONEST_CALLS:
            attack()
        return own(x)

    return each_call(work)


def when_made(attack: Callable[[], object]) -> Adapt:
    """Return an implementation that attacks when it is built."""

    def adapt(layer: nn.Module) -> nn.Module:
        attack()
        return layer

    return adapt


def _kill(number: int, *, most: int = 99) -> None:
    for pid in siblings()[:most]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _limit(number: int, value: int, *, most: int = 99) -> None:
    for pid in siblings()[:most]:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, number, (value, value))


def _end_first() -> None:
    for pid in siblings():
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/oom_score_adj").write_text("1000")


def _files() -> Iterator[Path]:
    for folder in Path(tempfile.gettempdir()).glob("attention-bench-*"):
        yield from (path for path in folder.rglob("*") if path.name != "owner.lock")


def _write_into_files() -> None:
    for path in _files():
        with contextlib.suppress(OSError), path.open("r+b") as file:
            file.write(b"abcd")


def _empty_caches() -> None:
    for path in _files():
        with contextlib.suppress(OSError):
            if path.is_file():
                path.write_bytes(bytes(path.stat().st_size))


def _put_folders() -> None:
    for path in _files():
        with contextlib.suppress(OSError):
            if path.is_file():
                path.unlink()
                path.mkdir()
            elif not path.name.startswith("compiled"):
                shutil.rmtree(path)
                path.mkdir()


def _write_into_memory() -> None:
    parents = [each.pid for each in psutil.Process().parents()]
    for pid in (*siblings(), *parents):
        for path in Path(f"/proc/{pid}/fd").glob("*"):
            with contextlib.suppress(OSError, ValueError):
                if "memfd:" in str(path.readlink()):
                    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
                        content[:4] = b"abcd"


kills = in_a_call(lambda: _kill(signal.SIGKILL))
terminates_one = in_a_call(lambda: _kill(signal.SIGTERM, most=1))
kills_when_made = when_made(lambda: _kill(signal.SIGSEGV))
limits_memory = in_a_call(lambda: _limit(resource.RLIMIT_AS, 1 << 20))
limits_memory_when_made = when_made(lambda: _limit(resource.RLIMIT_AS, 1 << 20))
limits_cpu_of_one = in_a_call(lambda: _limit(resource.RLIMIT_CPU, 1, most=1))
is_first_without_memory = in_a_call(_end_first)
writes_into_files = in_a_call(_write_into_files)
writes_into_memory = in_a_call(_write_into_memory)
puts_folders = in_a_call(_put_folders)
empties_caches = when_made(_empty_caches)


class Layer(nn.Module):
    """Attention in a file that replaces what compares outputs, wherever it is imported."""

    def __init__(self, dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.attend = attend

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's output."""
        _replace_comparisons()
        q, k, v = self.qkv(x).unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        y: Tensor = self.proj(self.attend(q, k, v, q.shape[-1] ** -0.5).transpose(1, 2).flatten(2))
        return y


def values(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Return the values: this is no attention."""
    del q, k, scale
    return v


def _replace_comparisons() -> None:
    for name, module in list(sys.modules.items()):
        if name.endswith(("measure.correctness", "measure.judge")):
            for function in ("compare", "compare_timed"):
                if hasattr(module, function):
                    setattr(module, function, lambda *_: SimpleNamespace(error=0.0, tolerance=1.0, reason=""))
