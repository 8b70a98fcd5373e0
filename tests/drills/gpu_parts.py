"""One part of the drill on a GPU: `python -m tests.drills.gpu_parts PART DEVICE FOLDER END`.

The last line that it prints says what was seen. The exit status is 0 if the part passed, 1 if it failed, and SKIPPED if
it can't be tried on this device. END is the monotonic time at which it is ended. Runs are measured by the command that
users type; this process imports torch only for the parts that use it themselves.
"""

import faulthandler
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import psutil

from bench.analyse.analysed_run import AnalysedRun
from bench.plan.case import CONTROL
from bench.plan.device import COLD, GRAPH, HOST, HOT, kind
from bench.plan.lengths import padding
from bench.store.journal import JOURNAL
from bench.store.table import RESULTS
from impls.catalogue import IMPLEMENTATIONS
from tests.drills.gpu import SKIPPED, FailedError, SkippedError, judged

CLOSING, CLOSING_S = 0.2, 10.0
"""The part of its time, and at most so many seconds, that a run has left when it is interrupted: to make its page."""

PAGE_S = 5.0
"""A page needs so many seconds."""

ENDING_S = 1.0
"""So long before its end a part prints where it stands."""

BACKENDS = {f"sdpa_{part}": part for part in ("flash", "efficient", "cudnn", "math")}
"""Implementations that name a backend of scaled_dot_product_attention, each with a part of its operator's name."""

TWINS = ((8, 197, 384, 6), (32, 197, 384, 6), (8, 1024, 768, 12), (32, 1024, 768, 12), (64, 1024, 768, 12),
         (128, 1024, 768, 12))  # fmt: skip
"""Batch, tokens, channels and heads at which the layer takes 20 µs to 2 ms on an H200."""

TWINS_ON_CPU = ((1, 50, 64, 2), (2, 100, 64, 2))
PROCESSES = 5
SHORT_S, NEAR, NEAR_IF_SHORT = 50e-6, 0.01, 0.02
"""Twins differ by less than 1 %, in calls of less than 50 µs by less than 2 %."""

SMALL = ("--batch", "8", "--num-tokens", "197", "--channels", "384", "--num-heads", "6")
LARGE = ("--batch", "32", "--num-tokens", "1024", "--channels", "768", "--num-heads", "12")
ON_CPU = ("--batch", "8", "--num-tokens", "128", "--channels", "128", "--num-heads", "4")
"""Options for a shape: small and large ones for a GPU, and one for the rehearsal."""

OF_LENGTHS = ("--batch", "16", "--num-tokens", "1024", "--channels", "1024", "--num-heads", "16")
"""Options for a shape of items of different lengths."""

ON_CPU_S = 20.0
"""The seconds after which the race of the rehearsal ends."""

FEW_HACKS = ("memo_by_id", "zeroes_its_input", "all_but_one_item")
"""The dishonest kernels of the rehearsal; tests try all of them on a CPU."""

HARMFUL = {"tests.foreign:hungry": "oom: ", "tests.foreign:exits": "crashed: ", "tests.foreign:raises": "error: "}
RUINOUS = {"tests.hacks:ruins_the_context": "(error|crashed): "}
"""Implementations that harm their process or the GPU, with patterns for how they end: the others go on."""

OK = "ok: "
PLAIN = {"eager": OK, "sdpa": OK}
PADDED = "sdpa"
LENGTHS = {PADDED: OK, "loop": OK, "buckets": OK, **dict.fromkeys(("nested", "flex_packed", "varlen"), "(ok|unsupp)")}
"""How implementations end that compute items of different lengths, the first padded and the others packed."""

STREAMS = {"eager": OK, "tests.foreign:joined_stream": OK, "tests.hacks:side_stream": "incorrect: "}
"""How implementations end of which the last leaves its work on another stream."""

ONCE = ("--no-race", "--no-control", "--processes", "1", "--budget-s", "0.5")
"""Options of a run that measures each row once."""


@dataclass(frozen=True)
class Drill:
    """The device, a folder for runs, and the monotonic time at which the part is ended."""

    device: str
    folder: Path
    end_s: float

    @property
    def is_gpu(self) -> bool:
        """Whether the device is a GPU."""
        return not kind(self.device).is_timed_by_host

    @property
    def dtype(self) -> str:
        """The dtype of the parts that have one."""
        return "bfloat16" if self.is_gpu else "float32"

    @property
    def measuring_s(self) -> float:
        """The seconds for which a run may go on from now on."""
        left_s = self.end_s - time.monotonic()
        return left_s - min(CLOSING * left_s, CLOSING_S)

    def need_gpu(self, why: str) -> None:
        """Raise SkippedError on a CPU."""
        if not self.is_gpu:
            raise SkippedError(f"needs a CUDA device: {why}")

    def shape(self, of_gpu: Sequence[str] = SMALL) -> tuple[str, ...]:
        """Return options for a shape and the dtype."""
        return *(of_gpu if self.is_gpu else ON_CPU), "--dtype", self.dtype

    def bench(self, name: str, *words: str, end_s: float | None = None) -> pd.DataFrame:
        """Measure by the command that users type and return the rows; `first_s` of its attrs is when two were there.

        The run is interrupted before the part's time is over, so that its page can be made.
        """
        folder, begin_s = self.folder / name, time.monotonic()
        end_s = end_s or begin_s + self.measuring_s
        command = [sys.executable, "-m", "pytest", "bench", "-p", "no:cacheprovider", "--run", str(folder)]
        first_s = math.nan
        process = subprocess.Popen([*command, "--device", self.device, *words], stdout=sys.stdout, stderr=sys.stdout)
        while process.poll() is None:
            if math.isnan(first_s) and _lines(folder / JOURNAL) > 2:
                first_s = time.monotonic() - begin_s
            if time.monotonic() > end_s:
                process.send_signal(signal.SIGINT)
                end_s = self.end_s
            time.sleep(0.1)
        if process.returncode < 0:
            raise FailedError(f"{name}: the run was ended by {signal.Signals(-process.returncode).name}")
        if not (folder / RESULTS).exists():
            when = f"within {time.monotonic() - begin_s:.0f} s, exit status {process.returncode}"
            raise FailedError(f"{name}: nothing was measured {when}")
        for verb, made in (("report", "report.html"), ("plot", "plots")):
            if not (folder / made).exists() and self.end_s - time.monotonic() > PAGE_S:  # it was interrupted
                _said(sys.executable, "-m", "bench", verb, str(folder))
        table = AnalysedRun(folder).whole
        table.attrs["first_s"] = first_s
        return table

    def once(self, name: str, expected: Mapping[str, str], *words: str, points: int = 1) -> tuple[pd.DataFrame, str]:
        """Measure implementations once; return the rows, and how each ended. Raises FailedError as `_ends`."""
        table = self.bench(name, "--impl", ",".join(expected), *ONCE, *words)
        return table, _ends(table, expected, points)


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table; a missing reason is empty."""
    return table.fillna({"detail": ""}).to_dict("records")  # type: ignore[return-value]


def _lines(file: Path) -> int:
    return file.read_bytes().count(b"\n") if file.exists() else 0


def _said(*command: str) -> str:
    """Return what a command prints, on a wide terminal; raises FailedError if it fails."""
    wide = {**os.environ, "COLUMNS": "400"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=wide)
    print(done.stdout, done.stderr, flush=True)
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()
        raise FailedError(f"{' '.join(command[2:4])} ended with {done.returncode}: {lines[-1]}")
    return done.stdout


def _end(row: dict[str, Any]) -> str:
    """Return how a row ended: `ok: 12.3 us, host 4.5 us`, or its status and the reason."""
    if row["status"] != "ok":
        return f"{row['status']}: {row['detail']}"
    said = f"ok: {row['latency_s'] * 1e6:.1f} us"
    return said if pd.isna(row["host_s"]) else f"{said}, host {row['host_s'] * 1e6:.1f} us"


def _ends(table: pd.DataFrame, expected: Mapping[str, str], points: int = 1) -> str:
    """Return how each implementation ended, what is wrong first; the reasons of errors that were expected are left out.

    Raises FailedError if one has fewer rows than points, if one ended otherwise than its pattern says, or if none is
    `ok`.
    """
    said, wrong = list[str](), list[str]()
    for row in _rows(table):
        name, end = row["implementation"], _end(row)
        if not re.match(expected[name], end):
            wrong.append(f"{name} {end}, expected {expected[name]}")
        else:
            said.append(f"{name} {end if row['status'] in ('ok', 'unsupported') else row['status']}")
    if missing := [name for name in expected if [*table["implementation"]].count(name) < points]:
        wrong.append(f"not measured in time: {', '.join(missing)}")
    return judged(wrong + said, wrong or "ok" not in {*table["status"]})


def rows(drill: Drill) -> str:
    """Measure one plain, one SDPA and one compiled implementation at a small point."""
    return drill.once("rows", {**PLAIN, "compiled_sdpa": OK}, *drill.shape())[1]


def timings(drill: Drill) -> str:
    """Time sdpa once in each way."""
    ways = [way for way in (COLD, HOT, GRAPH, HOST) if drill.is_gpu or way == HOST]
    words = ("--impl", "sdpa", "--baseline", "sdpa", "--timing", ",".join(ways), *drill.shape(), *ONCE)
    table = drill.bench("timings", *words)
    said = [f"{row['timing']} {_end(row)}" for row in _rows(table)]
    is_wrong = len(said) < len(ways) or {*table["status"]} != {"ok"}
    return judged([*said, *([] if drill.is_gpu else ["the others need a CUDA device"])], is_wrong)


def twins(drill: Drill) -> str:
    """Time the same layer under two names behind a hold, and by events around one call without one."""
    shapes = TWINS if drill.is_gpu else TWINS_ON_CPU
    named = [dict(zip(("batch", "num_tokens", "channels", "num_heads"), shape, strict=True)) for shape in shapes]
    file = drill.folder / "twins.toml"
    grids = ["\n".join(f"{name} = {value}" for name, value in columns.items()) for columns in named]
    defaults = f'[defaults]\nlayer = "vit"\ndtype = "{drill.dtype}"\n'
    effort = f"race = false\nprocesses = {PROCESSES}\nbudget_s = {1 if drill.is_gpu else 0.5}\n"
    head = 'implementations = ["sdpa"]\nbaseline = "sdpa"\n' + effort
    file.write_text(head + defaults + "".join(f"\n[[grid]]\n{grid}\n" for grid in grids), encoding="utf-8")
    without = ""
    if drill.is_gpu:
        ratios = [*_unheld(drill, named)]
        without = ", ".join(f"{min(each):.3f} to {max(each):.3f}" for each in zip(*ratios, strict=True))
    table = drill.bench("twins", "--sweep", str(file))
    own = _rows(table[(table["implementation"] == CONTROL) & table["speedup"].notna()].sort_values("latency_s"))
    said = "with a hold " if drill.is_gpu else "by the host's clock "
    said += ", ".join(f"{row['speedup']:.3f} at {row['latency_s'] * 1e6:.0f} us" for row in own)
    said += f"; without, each of {PROCESSES} processes {without}" if without else ""
    near = {True: NEAR_IF_SHORT, False: NEAR}
    off = [row for row in own if abs(row["speedup"] - 1) > near[row["latency_s"] < SHORT_S]]
    if len(own) < len(shapes) or (off and drill.is_gpu):
        raise FailedError(f"{said}; {len(own)} of {len(shapes)} points, {len(off)} off by more than 1 %, 2 % if short")
    return said


def _unheld(drill: Drill, points: Sequence[dict[str, int]]) -> Iterator[list[float]]:
    """Yield the ratios at these points in each process."""
    on = {"device": drill.device, "timing": COLD, "dtype": drill.dtype}
    words = [json.dumps({**on, **columns}) for columns in points]
    for _ in range(PROCESSES):
        said = _said(sys.executable, "-m", "tests.drills.gpu_torch", *words)
        yield [float(line.split()[1]) for line in said.splitlines() if line.startswith("ratio ")]


def quick(drill: Drill) -> str:
    """Measure the default sweep as a user would."""
    begin_s = time.monotonic()
    within = f"{drill.measuring_s if drill.is_gpu else ON_CPU_S:.0f}s"
    small = () if drill.is_gpu else ("--num-tokens", "50", "--impl", "eager,sdpa,manual", "--budget-s", "1")
    table = drill.bench("quick", "--within", within, *small, end_s=drill.end_s - PAGE_S)
    took_s = time.monotonic() - begin_s
    counts = ", ".join(f"{count} {status}" for status, count in Counter(table["status"]).items())
    said = [f"first rows after {table.attrs['first_s']:.0f} s, end after {took_s:.0f} s (limit {within}); {counts}"]
    for row in _rows(table[table["rank"] == 1]):
        high = row["slowdown_high"]
        bound = "no bound" if pd.isna(high) else f"can cost {high - 1:.1%}"
        size = f"N={row['num_tokens']} C={row['channels']} H={row['num_heads']} {row['dtype']}"
        said.append(f"{size}: {row['implementation']} {row['latency_s'] * 1e6:.0f} us, {bound}")
    bad = table[~table["status"].isin(["ok", "unsupported", "skipped"])]
    ends = {f"{row['implementation']} {row['status']}: {row['detail']}" for row in _rows(bad)}
    return judged([*said, *sorted(ends)], len(bad) or len(said) == 1)


def packed(drill: Drill) -> str:
    """Measure items of different lengths padded and packed: the share of padding, and what packing leaves of a call."""
    words = ("--lengths", "uniform", "--baseline", PADDED, *drill.shape(OF_LENGTHS))
    table, said = drill.once("packed", LENGTHS, *words)
    by_name = {row["implementation"]: row for row in _rows(table) if row["status"] == "ok"}
    whole = by_name.pop(PADDED)
    share = padding(whole["lengths"], whole["batch"], whole["num_tokens"])
    left = [f"{name} {row['latency_s'] / whole['latency_s']:.2f} of its time, "
            f"{row['peak_bytes'] / whole['peak_bytes']:.2f} of its peak" for name, row in by_name.items()]  # fmt: skip
    return "; ".join([f"{share:.0%} padding in {PADDED}", *left, said])


def profile(drill: Drill) -> str:
    """Profile two cases with their page, and read that the kernels of the device are in it."""
    drill.once("profile", PLAIN, *drill.shape())
    folder = drill.folder / "profile"
    _said(sys.executable, "-m", "bench", "profile", str(folder), "--report")
    page = folder / "profile.html"
    if not page.exists():
        raise FailedError("there is no page of profiles")
    if drill.is_gpu and not re.search(r"gemm|flash|fmha|cutlass|elementwise", page.read_text(encoding="utf-8")):
        raise FailedError("the page names no kernel of the device")
    traces = sorted(path.name for path in folder.rglob("*.json.gz"))
    return f"a page of {page.stat().st_size / 2**10:.0f} KiB, {len(traces)} traces"


def hacks(drill: Drill) -> str:
    """Measure dishonest and harmful kernels: each ends as the tables of `tests` say, and the others go on."""
    if drill.is_gpu:
        expected = {**import_module("tests.hacks_of_gpu").EXPECTED, **HARMFUL, **RUINOUS}
    else:
        planted = import_module("tests.hacks")
        expected = {**{f"{planted.__name__}:{name}": planted.EXPECTED[name] for name in FEW_HACKS}, **HARMFUL}
    shape = (*(LARGE if drill.is_gpu else ON_CPU), "--dtype", "float32")  # some round to another one
    return drill.once("hacks", {**PLAIN, **expected}, *shape)[1]


def backends(drill: Drill) -> str:
    """Ask for each backend of scaled_dot_product_attention by name, and read which kernel ran."""
    # a row whose process has another order of backends at the end is an error
    table, said = drill.once("backends", {**PLAIN, **dict.fromkeys(BACKENDS, "(ok|unsupported): ")}, *drill.shape())
    ran = dict(zip(table["implementation"], table["kernels"], strict=True))
    done = {*table[table["status"] == "ok"]["implementation"]}
    others = [f"{name} ran {ran[name]}" for name, part in BACKENDS.items()
              if name in done and part not in str(ran[name]).lower()]  # fmt: skip
    return judged([*others, said, f"sdpa ran {ran['sdpa']}"], others)


def compiled(drill: Drill) -> str:
    """Measure every compiled implementation with a cold cache, and in a second process with a warm one."""
    ours = [
        name
        for name, entry in IMPLEMENTATIONS.items()
        if entry.compiles and not entry.packages and name != "flex_packed"
    ]
    names = ["eager", *(ours if drill.is_gpu else ours[:1])]
    table, said = drill.once("compiled", dict.fromkeys(names, OK), *drill.shape(), "--processes", "2")
    if left := [each.name() for each in psutil.Process().children(recursive=True)]:
        raise FailedError(f"{said}; processes are left: {', '.join(left)}")
    cold = table[(table["status"] == "ok") & (table["implementation"] != "eager")]
    if cold[["compile_cold_s", "compile_warm_s"]].isna().any(axis=None):
        raise FailedError(f"{said}; a time of compilation is missing")
    times = ", ".join(f"{row['implementation']} {row['compile_cold_s']:.1f} s cold, {row['compile_warm_s']:.1f} s warm"
                      for row in _rows(cold))  # fmt: skip
    return f"{said}; {times}"


def tests(_drill: Drill) -> str:
    """Run the tests that need a GPU; other files may import packages that are not here."""
    files = [str(path) for path in sorted(Path("tests").rglob("test_*.py")) if "mark.cuda" in path.read_text()]
    command = [sys.executable, "-m", "pytest", "-m", "cuda", "-q", "-p", "no:cacheprovider", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    last = done.stdout.strip().splitlines()[-1].strip("= ") if done.stdout.strip() else done.stderr[-200:]
    if done.returncode not in (0, 5):
        raise FailedError(last)
    if " passed" not in last:
        raise SkippedError(last)
    return last


def streams(drill: Drill) -> str:
    """Leave work of some 20 µs and of a millisecond on another stream, and join it: only the first is blamed."""
    drill.need_gpu("it has streams")
    shape = ("--batch", "32", "--num-tokens", "16,1024", "--channels", "768", "--num-heads", "12")
    return drill.once("streams", STREAMS, *shape, "--dtype", drill.dtype, points=2)[1]


WITH_EVENTS = ("known", "slowed")
WITH_TORCH = ("imports", "forks", "correct", *WITH_EVENTS)
"""The parts that use torch in this process."""


def _part(name: str, drill: Drill) -> str:
    """Try a part: each that gpu.PARTS names is a function here or in gpu_torch."""
    if name not in WITH_TORCH:
        return str(globals()[name](drill))
    if name in WITH_EVENTS:
        drill.need_gpu("it has events")
    from tests.drills import gpu_torch  # imports torch

    return str(getattr(gpu_torch, name)(drill.device))


def main(name: str, device: str, folder: str, end_s: str) -> int:
    """Try a part, and return its exit status."""
    drill = Drill(device, Path(folder), float(end_s))
    drill.folder.mkdir(parents=True, exist_ok=True)
    try:
        print(_part(name, drill), flush=True)
    except SkippedError as reason:
        print(reason)
        return SKIPPED
    except FailedError as reason:
        print(reason)
        return 1
    except Exception as error:
        traceback.print_exc(file=sys.stdout)
        print(f"{type(error).__name__}: {' '.join(str(error).split())}")
        return 1
    return 0


if __name__ == "__main__":
    faulthandler.enable()
    faulthandler.dump_traceback_later(max(0.1, float(sys.argv[-1]) - ENDING_S - time.monotonic()))
    status = main(*sys.argv[1:])
    faulthandler.cancel_dump_traceback_later()
    sys.exit(status)
