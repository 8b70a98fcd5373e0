"""A GPU, measured as a GPU: `python -m tests.drills.gpu OUT [--device cpu] [--parts A,B] [--within-s S]`.

Each part has a process and a time limit of its own; a line says at once whether it passed, failed or was skipped. OUT
gets these lines, all output, and the runs, packed. It needs no network: packages that are missing can come as wheels
from `--wheels FOLDER`, so nothing but torch is needed at the start. Exit status 1 if a part failed.
"""

import argparse
import faulthandler
import importlib
import importlib.metadata
import multiprocessing
import os
import re
import signal
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.plan.case import CONTROL
from bench.plan.device import COLD, GRAPH, HOST, HOT, kind
from bench.plan.lengths import padding
from impls.catalogue import IMPLEMENTATIONS

if TYPE_CHECKING:
    import pandas as pd

PARTS: dict[str, int] = {
    "imports": 30,
    "rows": 90,
    "twins": 110,
    "known": 15,
    "slowed": 15,
    "streams": 45,
    "quick": 130,
    "packed": 60,
    "profile": 30,
    "hacks": 60,
    "backends": 45,
    "compiled": 60,
    "correct": 90,
}
"""The seconds that each part may take, in order: broken parts, the timers, and measurements with them."""

WITHIN_S = 480
"""The seconds that all parts may take: not each of them needs all of its own."""

CLOSING_S = 5.0
"""A run is interrupted so long before its part ends."""

ON_GPU_ALONE = ("known", "slowed", "streams")
"""The parts that a CPU can't try: it has no events and no streams."""

LINES, LOG, PACKED = "parts.txt", "log.txt", "runs.tar.gz"
"""The files in OUT."""

TRACE = ".json.gz"
"""The end of the names of files that are too large to be packed."""

TAIL = 12
"""The lines of output below the line of a part that failed."""

FATAL = "Fatal Python error"
"""What stands before the calls of a part that crashed, the innermost first."""

RUN = (sys.executable, "-m", "bench", "run")
"""The command that measures."""

ONCE = ("--no-race", "--no-control", "--processes", "1", "--budget-s", "0.5")
"""Options of a run that measures each row once."""

SMALL = ("--batch", "8", "--num-tokens", "197", "--channels", "384", "--num-heads", "6")
LARGE = ("--batch", "32", "--num-tokens", "1024", "--channels", "768", "--num-heads", "12")
OF_LENGTHS = ("--batch", "16", "--num-tokens", "1024", "--channels", "1024", "--num-heads", "16")
ON_CPU = ("--batch", "8", "--num-tokens", "128", "--channels", "128", "--num-heads", "4")
"""Options for a shape: three for a GPU, and one for the rehearsal."""

OK = "ok: "
PLAIN = {"eager": OK, "sdpa": OK}
PADDED = "sdpa"
LENGTHS = {PADDED: OK, "loop": OK, **dict.fromkeys(("nested", "flex_packed", "varlen"), "(ok|unsupp)")}
STREAMS = {"eager": OK, "tests.foreign:joined_stream": OK, "tests.hacks:side_stream": "incorrect: "}
HARMFUL = {"tests.foreign:hungry": "oom: ", "tests.foreign:exits": "crashed: ", "tests.foreign:raises": "error: "}
RUINOUS = {"tests.hacks:ruins_the_context": "(error|crashed): "}
"""How implementations end: patterns for the status and the detail."""

BACKENDS = {f"sdpa_{part}": part for part in ("flash", "efficient", "cudnn", "math")}
"""Implementations that name a backend of scaled_dot_product_attention, each with a part of its operator's name."""

FEW_HACKS = ("memo_by_id", "zeroes_its_input", "all_but_one_item")
"""The dishonest kernels of the rehearsal; tests try all of them on a CPU."""

SHORT_S, NEAR, NEAR_IF_SHORT = 50e-6, 0.01, 0.02
"""Twins differ by less than 1 %, in calls of less than 50 µs by less than 2 %."""

CYCLES, KNOWN_NEAR, LEAST_EVENT_S, PAUSE_S, REPEATS = 2_000_000, 0.02, 5e-6, 1e-3, 15
"""A kernel of about a millisecond; how near times must be; the most for two events; a pause of the host; timings."""


class FailedError(Exception):
    """A part that found something wrong; its text says what."""


def judged(said: Iterable[str], is_wrong: object) -> str:
    """Return what a part has seen, in one line; raises FailedError with it if it is wrong."""
    line = "; ".join(said)
    if is_wrong:
        raise FailedError(line)
    return line


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

    def shape(self, of_gpu: Sequence[str] = SMALL) -> tuple[str, ...]:
        """Return options for a shape and the dtype."""
        return (*of_gpu, "--dtype", "bfloat16") if self.is_gpu else (*ON_CPU, "--dtype", "float32")

    def bench(self, *words: str) -> "pd.DataFrame":
        """Measure by the command that users type and return the rows; it is interrupted before the part's time ends."""
        from bench.analyse.analysed_run import AnalysedRun
        from bench.store.table import RESULTS

        process = subprocess.Popen([*RUN, "--run", str(self.folder), "--device", self.device, *words])
        try:
            process.wait(self.end_s - time.monotonic() - CLOSING_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            process.wait()
        if not (self.folder / RESULTS).exists():
            raise FailedError(f"nothing was measured, exit status {process.returncode}")
        return AnalysedRun(self.folder).whole.fillna({"detail": ""})

    def once(self, expected: Mapping[str, str], *words: str, points: int = 1) -> "tuple[pd.DataFrame, str]":
        """Measure implementations once; return the rows, and how each ended."""
        table = self.bench("--impl", ",".join(expected), *ONCE, *words)
        return table, ends(table, expected, points)


def ended(row: dict[str, Any]) -> str:
    """Return how a row ended: `ok: 12.3 us, host 4.5 us`, or its status and the reason."""
    if row["status"] != "ok":
        return f"{row['status']}: {row['detail']}"
    said = f"ok: {row['latency_s'] * 1e6:.1f} us"
    return f"{said}, host {row['host_s'] * 1e6:.1f} us" if _is_known(row["host_s"]) else said


def _is_known(value: Any) -> bool:
    """Return whether a cell has a value: a missing one of pandas differs from itself, or is neither true nor false."""
    return value is not None and type(value).__name__ != "NAType" and bool(value == value)


def ends(table: "pd.DataFrame", expected: Mapping[str, str], points: int = 1) -> str:
    """Return how each implementation ended, failures first.

    Raises FailedError if one has fewer rows than points, if one ended otherwise than its pattern says, or if none is
    `ok`.
    """
    said, wrong = list[str](), list[str]()
    for row in table.to_dict("records"):
        name, end = str(row["implementation"]), ended(row)  # type: ignore[arg-type]
        if re.match(expected[name], end):
            said.append(f"{name} {end}")
        else:
            wrong.append(f"{name} {end}, expected {expected[name]}")
    if missing := [name for name in expected if [*table["implementation"]].count(name) < points]:
        wrong.append(f"not measured in time: {', '.join(missing)}")
    return judged(wrong + said, wrong or "ok" not in {*table["status"]})


# broken parts


def imports(drill: Drill) -> str:
    """Import what the suite needs, and compute once on the device."""
    import torch

    from bench.measure.devices import device

    said = [f"torch {torch.__version__}", f"CUDA {torch.version.cuda}", f"cuDNN {torch.backends.cudnn.version()}"]
    if obstacle := device(drill.device).obstacle:
        raise FailedError(f"{', '.join(said)}: {obstacle}")
    if drill.is_gpu:
        facts = torch.cuda.get_device_properties(drill.device)
        said += [facts.name, f"{facts.total_memory >> 30} GiB", f"L2 of {facts.L2_cache_size >> 20} MiB"]
    ones = torch.ones(64, 64, device=drill.device)
    total = ones.mm(ones).sum().item()
    return judged([*said, f"a product of ones adds up to {total:.0f}, expected {64**3}"], total != 64**3)


def rows(drill: Drill) -> str:
    """Measure one plain, one SDPA and one compiled implementation, in each way to time a call."""
    ways = [COLD, HOT, GRAPH, HOST] if drill.is_gpu else [HOST]
    words = ("--timing", ",".join(ways), *drill.shape())
    return drill.once({**PLAIN, "compiled_sdpa": OK}, *words, points=len(ways))[1]


# the timers


def twins(drill: Drill) -> str:
    """Time the same layer under two names: as sdpa and as its control."""
    sizes = ("--batch", "8,32", "--num-tokens", "197,1024", "--channels", "768", "--num-heads", "12")
    effort = ("--no-race", "--processes", "5" if drill.is_gpu else "2", "--budget-s", "1")
    table = drill.bench("--impl", "sdpa", "--baseline", "sdpa", *drill.shape(sizes), *effort)
    own = table[(table["implementation"] == CONTROL) & table["speedup"].notna()].sort_values("latency_s")
    pairs = [*zip(own["speedup"], own["latency_s"], strict=True)]
    off = [ratio for ratio, at_s in pairs if abs(ratio - 1) > (NEAR_IF_SHORT if at_s < SHORT_S else NEAR)]
    said = [f"{ratio:.3f} at {at_s * 1e6:.0f} us" for ratio, at_s in pairs]
    return judged([*said, f"{len(off)} off by more than 1 %, 2 % if short"], not pairs or (off and drill.is_gpu))


def _device_s(call: Callable[[], object], timing: str = HOT) -> float:
    from bench.measure import clock, cuda

    timer = cuda.timer(timing)
    return statistics.median(clock.timed(timer, call).call_s for _ in range(REPEATS))


def known(_drill: Drill) -> str:
    """Time kernels of 1, 2 and 4 times a length, which must be in proportion, and an empty pair of events."""
    from bench.measure import cuda

    times_s = [_device_s(partial(cuda._sleep, CYCLES * factor)) for factor in (1, 2, 4)]
    off = max((time_s / times_s[0] / factor - 1 for factor, time_s in zip((1, 2, 4), times_s, strict=True)), key=abs)
    event_s = cuda.event_s()
    said = [f"kernels of 1, 2 and 4 times the cycles are off by {off:+.1%} at most"]
    said += [f"an empty pair of events {event_s * 1e6:.2f} us"]
    return judged(said, abs(off) > KNOWN_NEAR or event_s > LEAST_EVENT_S)


def slowed(_drill: Drill, pause: Callable[[float], object] = time.sleep) -> str:
    """Slow the host between two kernels of a call: its device time stays, or the timer says why it has none."""
    from bench.measure import cuda
    from impls.contract import Unsupported

    def call(host_s: float) -> None:
        cuda._sleep(CYCLES // 10)
        if host_s:
            pause(host_s)
        cuda._sleep(CYCLES // 10)

    said, wrong = list[str](), False
    for timing in (COLD, HOT):
        plain_s = _device_s(partial(call, 0.0), timing)
        try:
            slow_s = _device_s(partial(call, PAUSE_S), timing)
        except Unsupported as reason:
            said.append(f"{timing}: {reason}")
            continue
        said.append(f"{timing}: {plain_s * 1e6:.1f} us, with {PAUSE_S * 1e3:g} ms of the host {slow_s * 1e6:.1f} us")
        wrong |= abs(slow_s / plain_s - 1) > KNOWN_NEAR
    return judged(said, wrong)


def streams(drill: Drill) -> str:
    """Leave work of some 20 µs and of a millisecond on another stream, and join it: only the first is blamed."""
    sizes = ("--batch", "32", "--num-tokens", "16,1024", "--channels", "768", "--num-heads", "12")
    return drill.once(STREAMS, *drill.shape(sizes), points=2)[1]


# measurements with them


def quick(drill: Drill) -> str:
    """Measure the default sweep as a user would."""
    within = f"{drill.end_s - time.monotonic() - 2 * CLOSING_S if drill.is_gpu else 20:.0f}s"
    small = () if drill.is_gpu else ("--num-tokens", "50", "--impl", "eager,sdpa,manual", "--budget-s", "1")
    table = drill.bench("--within", within, *small)
    said = [f"{count} {status}" for status, count in Counter(table["status"]).items()]
    for row in table[table["rank"] == 1].to_dict("records"):
        bound = f"within {row['slowdown_high'] - 1:.1%}" if _is_known(row["slowdown_high"]) else "no bound"
        said.append(f"{row['point']}: {row['implementation']} {row['latency_s'] * 1e6:.0f} us, {bound}")
    bad = table[~table["status"].isin(["ok", "unsupported", "skipped"])].to_dict("records")
    wrong = sorted({f"{row['implementation']} {row['status']}: {row['detail']}" for row in bad})
    return judged([*said, *wrong], wrong or not (table["rank"] == 1).any())


def packed(drill: Drill) -> str:
    """Measure items of different lengths padded and packed: the share of padding, and what packing leaves of a call."""
    words = ("--lengths", "uniform", "--baseline", PADDED, *drill.shape(OF_LENGTHS))
    table, said = drill.once(LENGTHS, *words)
    by_name = {row["implementation"]: row for row in table[table["status"] == "ok"].to_dict("records")}
    whole = by_name.pop(PADDED)
    left = [f"{name} {row['latency_s'] / whole['latency_s']:.2f} of its time" for name, row in by_name.items()]
    share = padding(whole["lengths"], whole["batch"], whole["num_tokens"])
    return "; ".join([f"{share:.0%} padding in {PADDED}", *left, said])


def profile(drill: Drill) -> str:
    """Profile two cases with their page, and read that the kernels of the device are in it."""
    drill.once(PLAIN, *drill.shape())
    subprocess.run([sys.executable, "-m", "bench", "profile", str(drill.folder)], check=True)
    page = (drill.folder / "report.html").read_text(encoding="utf-8")
    has_kernels = bool(re.search(r"gemm|flash|fmha|cutlass|elementwise", page))
    return judged([f"a page of {len(page) >> 10} KiB"], drill.is_gpu and not has_kernels)


def hacks(drill: Drill) -> str:
    """Measure dishonest and harmful kernels: each ends as the tables of `tests` say, and the others go on."""
    if drill.is_gpu:
        expected = {**importlib.import_module("tests.hacks_of_gpu").EXPECTED, **HARMFUL, **RUINOUS}
    else:
        every = importlib.import_module("tests.hacks").EXPECTED
        expected = {**{f"tests.hacks:{name}": every[name] for name in FEW_HACKS}, **HARMFUL}
    shape = (*(LARGE if drill.is_gpu else ON_CPU), "--dtype", "float32")  # some round to another one
    return drill.once({**PLAIN, **expected}, *shape)[1]


def backends(drill: Drill) -> str:
    """Ask for each backend of scaled_dot_product_attention by name, and read which kernel ran."""
    # a row whose process has another order of backends at the end is an error
    table, said = drill.once({**PLAIN, **dict.fromkeys(BACKENDS, "(ok|unsupported): ")}, *drill.shape())
    ran = table[table["status"] == "ok"].set_index("implementation")["kernels"].astype(str)
    others = [f"{name} ran {ran[name]}" for name, part in BACKENDS.items() if part not in ran.get(name, part).lower()]
    return judged([*others, said, f"sdpa ran {ran['sdpa']}"], others)


def compiled(drill: Drill) -> str:
    """Measure every compiled implementation with a cold cache, and in a second process with a warm one."""
    ours = [name for name, of in IMPLEMENTATIONS.items() if of.compiles and not of.packages and name != "flex_packed"]
    names = ["eager", *(ours if drill.is_gpu else ours[:1])]
    table, said = drill.once(dict.fromkeys(names, OK), *drill.shape(), "--processes", "2")
    import psutil

    if left := [each.name() for each in psutil.Process().children(recursive=True)]:
        raise FailedError(f"{said}; processes are left: {', '.join(left)}")
    cold_s = table[table["implementation"] != "eager"].set_index("implementation")["compile_cold_s"]
    return judged([said, *(f"{name} {cold:.1f} s cold" for name, cold in cold_s.items())], cold_s.isna().any())


def correct(drill: Drill) -> str:
    """Check all implementations that aren't compiled at twelve odd shapes, in each dtype, in inference and train."""
    warnings.simplefilter("ignore")  # torch says there why a backend is not used, and so do the reasons
    ours = [name for name, entry in IMPLEMENTATIONS.items() if not (entry.packages or entry.compiles)]
    names = ours if drill.is_gpu else [*PLAIN]
    dtypes = ("float32", "bfloat16", "float16") if drill.is_gpu else ("float32",)
    counts = Counter[str]()
    for dtype, mode in product(dtypes, ("inference", "train")):
        said = _checked(names, mode, dtype, drill.device)
        print(dtype, mode, dict(said), flush=True)
        counts += said
    wrong = [f"{text} ({count})" for text, count in counts.items() if text not in ("accepted", "unsupported")]
    return judged([*wrong, f"{counts['accepted']} accepted, {counts['unsupported']} unsupported"], wrong)


def _checked(names: Sequence[str], mode: str, dtype: str, device: str) -> Counter[str]:
    """Return how often the check accepted implementations, and everything else that it said."""
    from bench.measure import subjects, workload
    from impls.contract import Unsupported
    from tests.make.checks import SHAPES, compared, expected
    from tests.make.points import point

    said = Counter[str]()
    for shape in SHAPES:
        work = workload.make(point(**shape, mode=mode, dtype=dtype, device=device, timing=kind(device).timings[0]))
        checks = cache(partial(expected, work))  # the same for all
        for name in names:
            try:
                reason = compared(subjects.subject(work, name), work, checks()).reason
                said[f"{name} {dtype} {mode}: {reason}" if reason else "accepted"] += 1
            except Unsupported:
                said["unsupported"] += 1
            except Exception as error:
                said[f"{name} {dtype} {mode}: {type(error).__name__}: {' '.join(str(error).split())[:70]}"] += 1
    return said


# the parts


def tried(part: str, device: str, runs: Path, log: Path, most_s: float) -> list[str]:
    """Return the line of a part, which writes its run into a folder, and the end of its output if it failed.

    A part that takes longer is ended.
    """
    drill = Drill(device, runs / part, time.monotonic() + most_s)
    start = log.stat().st_size
    process = multiprocessing.get_context("fork").Process(target=_in_process, args=(part, drill, log))
    process.start()
    process.join(most_s)
    if is_late := process.is_alive():
        assert process.pid
        os.killpg(process.pid, signal.SIGKILL)
        process.join()
    output = log.read_bytes()[start:].decode(errors="replace")
    said = [line for line in output.splitlines() if line.strip()] or ["no output"]
    fatal = next((number for number, line in enumerate(said) if line.startswith(FATAL)), None)
    below = said[-TAIL:-1] if fatal is None else said[fatal + 1 :][:TAIL]
    status = process.exitcode or 0
    word = "failed" if status else "passed"
    if is_late:
        word = f"failed: took longer than {most_s:.0f} s"
    elif status < 0:
        word = f"failed: ended by {signal.Signals(-status).name}"
    last = said[-1 if fatal is None else fatal]
    line = f"{part}: {word}: {last} ({time.monotonic() - drill.end_s + most_s:.0f} s)"
    return [line, *(f"    {each}" for each in below)] if word.startswith("failed") else [line]


def _in_process(part: str, drill: Drill, log: Path) -> None:
    """Try a part in a process of its own, and end with its status; all output goes to the log."""
    os.setsid()
    with log.open("a") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    faulthandler.enable(sys.stdout)
    print(f"===== {part}")
    try:
        print(globals()[part](drill))
    except Exception as error:
        traceback.print_exc(file=sys.stdout)
        print(f"{type(error).__name__}: {' '.join(str(error).split())}")
        sys.exit(1)


def unpacked(wheels: Path, site: str) -> str:
    """Unpack wheels into a folder, in which all processes search first; return why that failed, empty if it did not."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", site]
    done = subprocess.run([*command, *map(str, wheels.glob("*.whl"))], capture_output=True, text=True, check=False)
    sys.path.insert(0, site)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [site, os.environ.get("PYTHONPATH")]))
    return done.stderr.strip()[-300:] if done.returncode else ""


def main(words: Sequence[str]) -> int:
    """Try the parts and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.drills.gpu", description=__doc__)
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--parts", default=",".join(PARTS), metavar="A,B", help="of " + ", ".join(PARTS))
    parser.add_argument("--within-s", type=float, default=WITHIN_S, metavar="S", help="seconds for all; parts share it")
    parser.add_argument("--wheels", type=Path, metavar="FOLDER", help="packages that are missing, as files")
    chosen = parser.parse_args(words)
    parts = chosen.parts.split(",")
    if unknown := [part for part in parts if part not in PARTS]:
        parser.error(f"--parts {','.join(unknown)}: there is no such part; there are {', '.join(PARTS)}")
    begin_s, slower = time.monotonic(), chosen.within_s / WITHIN_S
    chosen.out.mkdir(parents=True, exist_ok=True)
    lines, log = chosen.out / LINES, chosen.out / LOG
    lines.write_text("")
    log.write_text("")
    failed = 0
    with tempfile.TemporaryDirectory(prefix="gpu-drill-") as runs, tempfile.TemporaryDirectory() as site:
        if chosen.wheels and (problem := unpacked(chosen.wheels, site)):
            parser.error(f"--wheels {chosen.wheels}: {problem}")
        for part in parts:
            most_s = min(slower * PARTS[part], chosen.within_s - (time.monotonic() - begin_s))
            if most_s < CLOSING_S or (part in ON_GPU_ALONE and kind(chosen.device).is_timed_by_host):
                _say(lines, f"{part}: skipped: {'no time was left' if most_s < CLOSING_S else 'needs a CUDA device'}")
                continue
            said = tried(part, chosen.device, Path(runs), log, most_s)
            failed += said[0].startswith(f"{part}: failed")
            _say(lines, *said)
            with tarfile.open(chosen.out / PACKED, "w:gz") as file:
                file.add(runs, "runs", filter=lambda of: None if of.name.endswith(TRACE) else of)
    _say(lines, f"{failed} of {len(parts)} parts failed; {time.monotonic() - begin_s:.0f} s")
    return int(failed > 0)


def _say(file: Path, *lines: str) -> None:
    print(*lines, sep="\n", flush=True)
    with file.open("a", encoding="utf-8") as opened:
        opened.writelines(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
