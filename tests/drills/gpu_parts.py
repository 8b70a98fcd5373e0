"""One part of the drill on a GPU: `python -m tests.drills.gpu_parts PART DEVICE FOLDER SECONDS`.

The last line that it prints says what was seen. The exit status is 0 if the part passed, 1 if it failed, and SKIPPED if
it can't be tried on this device.
"""

import re
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch

import impls
from bench.engine.member import Member
from bench.engine.pool import Pool
from bench.engine.replicate import Replicate
from bench.engine.run import run
from bench.measure import workload
from bench.measure.clock import timed
from bench.measure.devices import device
from bench.plan.case import Case, Point
from bench.plan.layers import peak_bytes
from bench.plan.sweep import Effort, Sweep
from bench.sampling.rounds import Length
from bench.store.table import RESULTS, load
from tests.drills.gpu import SKIPPED
from tests.make.checks import SHAPES, compared, expected
from tests.make.points import point

ENDING_S = 15.0
"""The seconds before its limit at which a run is interrupted: what it has measured is kept."""

CHECKED_ON_CPU = ("eager", "online", "sdpa", "mha")
"""The implementations that are checked on a CPU, which has a test of all: there it is a rehearsal, in float32."""

TWIN = "tests.foreign:twin"
BACKENDS = {f"sdpa_{part}": part for part in ("flash", "efficient", "cudnn", "math")}
"""Implementations that name a backend of scaled_dot_product_attention, each with a part of its operator's name."""

LONG_S, NEAR = 100e-6, 0.02
"""Kernels from this length on are timed to this share by events, compared with the profiler."""


class FailedError(Exception):
    """A part that found something wrong; its text says what."""


class SkippedError(Exception):
    """A part that can't be tried on this device; its text says why."""


@dataclass(frozen=True)
class Drill:
    """The device, a folder for runs, and the seconds that a part may take."""

    device: str
    folder: Path
    most_s: float

    @property
    def is_gpu(self) -> bool:
        """Whether the device is a GPU."""
        return self.device != "cpu"

    def at(self, **columns: Any) -> Point:
        """Return a point on the device, with the timing that it has if nothing is chosen."""
        on = {"device": self.device, "timing": "device-cold" if self.is_gpu else "host"}
        return point(**{**on, **columns})

    def need_gpu(self, why: str) -> None:
        """Raise SkippedError on a CPU."""
        if not self.is_gpu:
            raise SkippedError(f"needs a CUDA device: {why}")

    def run(self, name: str, names: Sequence[str], points: Sequence[Point], **effort: Any) -> pd.DataFrame:
        """Measure a sweep into the folder and return its rows."""
        effort = {"processes": 2, "budget_s": 0.5, "timeout_s": 60.0, **effort}
        list(run(Sweep(name, tuple(points), tuple(names), "eager", Effort(**effort)), self.folder / name))
        return load(self.folder / name)

    def bench(self, name: str, *words: str, budget_s: float = 1) -> pd.DataFrame:
        """Measure by the command that users type; it is interrupted before the part's time is over."""
        command = [sys.executable, "-m", "pytest", "bench", "--run", str(self.folder / name), "--device", self.device]
        command += ["--processes", "2", "--budget-s", f"{budget_s:g}", *words]
        process = subprocess.Popen(command, stdout=sys.stdout, stderr=sys.stdout)
        try:
            process.wait(max(1.0, self.most_s - ENDING_S))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            process.wait()
        if not (self.folder / name / RESULTS).exists():
            raise FailedError(f"{name}: no point was finished in {self.most_s - ENDING_S:.0f} s")
        return load(self.folder / name)


def tests(drill: Drill) -> str:
    """Run the tests that need a GPU; other files may import packages that are not here."""
    files = [str(path) for path in sorted(Path("tests").rglob("test_*.py")) if "mark.cuda" in path.read_text()]
    command = [sys.executable, "-m", "pytest", "-m", "cuda", "-q", "-p", "no:cacheprovider", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(done.stdout)
    last = done.stdout.strip().splitlines()[-1].strip("= ") if done.stdout.strip() else done.stderr[-200:]
    if done.returncode not in (0, 5):
        raise FailedError(last)
    if " passed" not in last:
        raise SkippedError(last)
    return last


def judged(name: str, mode: str, dtype: str, device: str) -> tuple[Counter[str], float]:
    """Return how often the check accepted an implementation, its other results, and the largest error in tolerances."""
    said: Counter[str] = Counter()
    severity = 0.0
    for shape in SHAPES:
        torch.compiler.reset()
        timing = "host" if device == "cpu" else "device-cold"
        work = workload.make(point(**shape, mode=mode, dtype=dtype, device=device, timing=timing))
        try:
            subject = workload.subject(work, name)
            result = compared(subject, work, expected(work))
            said[result.reason or "accepted"] += 1
            severity = max(severity, result.severity)
        except impls.Unsupported as reason:
            said[f"unsupported: {str(reason)[:70]}"] += 1
        except Exception as error:
            said[f"{type(error).__name__}: {str(error).strip().splitlines()[0][:70]}"] += 1
    return said, severity


def correct(drill: Drill) -> str:
    """Check all implementations at twelve shapes, in each dtype, in inference and train."""
    warnings.simplefilter("ignore")  # torch says there why a backend is not used, and so do the reasons
    refused, accepted = [], 0
    dtypes = ("float32", "bfloat16", "float16") if drill.is_gpu else ("float32",)
    ours = [name for name, entry in impls.IMPLEMENTATIONS.items() if not entry.packages] if drill.is_gpu else []
    names = [name for name in ours or CHECKED_ON_CPU if not impls.compiles(name)]  # their own part has them
    for dtype in dtypes:
        for mode in ("inference", "train"):
            for name in names:
                said, severity = judged(name, mode, dtype, drill.device)
                accepted += said["accepted"]
                wrong = {text: count for text, count in said.items() if not text.startswith(("accepted", "unsupp"))}
                refused += [f"{name} {dtype} {mode}: {text} ({count})" for text, count in wrong.items()]
                print(f"{dtype} {mode} {name}: {dict(said)}, at most {severity:.0%} of the tolerance", flush=True)
    if refused:
        raise FailedError("; ".join(refused))
    return f"{accepted} checks of {len(names)} implementations accepted, none refused, in {', '.join(dtypes)}"


def kernels(drill: Drill) -> str:
    """Ask for each backend of scaled_dot_product_attention by name, and read which kernel ran."""
    dtype = "bfloat16" if drill.is_gpu else "float32"
    at = drill.at(batch=4, num_tokens=256, channels=256, num_heads=4, dtype=dtype)
    table = drill.run("kernels", ("eager", "sdpa", *BACKENDS), [at]).set_index("implementation")
    said = []
    for name, part in BACKENDS.items():
        row = table.loc[name]
        print(name, row["status"], row["detail"], row["kernels"])
        if row["status"] == "ok" and part not in str(row["kernels"]).lower():
            raise FailedError(f"{name} ran {row['kernels']}")
        if row["status"] not in ("ok", "unsupported"):
            raise FailedError(f"{name}: {row['status']}: {row['detail']}")
        said.append(f"{name} {row['status']}")
    return f"{', '.join(said)}; sdpa ran {table['kernels'].to_dict()['sdpa']}"


def faults(drill: Drill) -> str:
    """Let kernels run out of memory, ruin the CUDA context, hide work and crash: the others go on."""
    expected = {"tests.foreign:hungry": "oom", "tests.foreign:exits": "crashed", "tests.foreign:raises": "error"}
    if drill.is_gpu:
        expected |= {"tests.hacks:ruins_the_context": "error crashed", "tests.hacks:side_stream": "incorrect"}
    at = drill.at(batch=8, num_tokens=512, channels=256, num_heads=4)
    table = drill.run("faults", ("eager", "sdpa", *expected), [at]).set_index("implementation")
    print(table[["status", "detail"]].to_string())
    status, detail = table["status"].to_dict(), table["detail"].to_dict()
    wrong = [name for name in ("eager", "sdpa") if status[name] != "ok"]
    wrong += [name for name, ends in expected.items() if status[name] not in ends.split()]
    if wrong:
        raise FailedError("; ".join(f"{name} is {status[name]}: {detail[name]}" for name in wrong))
    return ", ".join(f"{name.partition(':')[2]} {status[name]}" for name in expected)


def events(drill: Drill) -> str:
    """Compare times by events with the profiler's sum of kernels, and cold with hot."""
    drill.need_gpu("it has events")
    from torch.profiler import ProfilerActivity, profile

    said = []
    hot, cold = (device(drill.device).timer(timing) for timing in ("device-hot", "device-cold"))
    for size in (2048, 4096, 8192):
        call = partial(torch.matmul, *torch.randn(2, size, size, device=drill.device, dtype=torch.bfloat16))
        hot(call, 20)
        with profile(activities=[ProfilerActivity.CUDA]) as profiled:
            timed_s = timed(hot, call, 50).call_s
        sum_s = sum(event.self_device_time_total for event in profiled.key_averages()) / 1e6 / 50
        hot_s, cold_s = (min(timed(timer, call, 20).call_s for _ in range(5)) for timer in (hot, cold))
        times = {"events": timed_s, "kernels": sum_s, "hot": hot_s, "cold": cold_s}
        said.append(f"{size}: " + ", ".join(f"{name} {time_s * 1e6:.1f} us" for name, time_s in times.items()))
        print(said[-1], flush=True)
        if sum_s > LONG_S and not abs(timed_s / sum_s - 1) < NEAR:
            raise FailedError(f"{said[-1]}: events are off by {timed_s / sum_s - 1:+.1%}")
        if cold_s < hot_s * (1 - NEAR):
            raise FailedError(f"{said[-1]}: cold is faster than hot")
    return "; ".join(said)


def _spun(factor: int) -> None:
    """Keep the core busy for so many times 5 ms."""
    end = time.perf_counter() + 5e-3 * factor
    while time.perf_counter() < end:
        pass


def spin(drill: Drill) -> str:
    """Time spins of 1, 2 and 4 times a length, of cycles on a GPU: the times must be in proportion."""
    timer = device(drill.device).timer("device-hot" if drill.is_gpu else "host")
    calls = [partial(_spun, factor) if not drill.is_gpu else partial(torch.cuda._sleep, 10_000_000 * factor)
             for factor in (1, 2, 4)]  # fmt: skip
    timed(timer, calls[0], 3)
    times_s = [min(timed(timer, call, 5).call_s for _ in range(5)) for call in calls]
    off = [time_s / times_s[0] / factor - 1 for factor, time_s in zip((1, 2, 4), times_s, strict=True)]
    said = f"{', '.join(f'{time_s * 1e3:.3f} ms' for time_s in times_s)} for 1, 2 and 4 times the cycles"
    if max(map(abs, off)) > NEAR:
        raise FailedError(f"{said}: off by {max(off, key=abs):+.1%}")
    return said


def memory(drill: Drill) -> str:
    """Read the peak memory of eager and sdpa in ten processes each, beside the count of tensors."""
    at = drill.at(batch=2, num_tokens=256, channels=256, num_heads=4)
    pool, peaks = Pool(1, ("eager", "sdpa")), Counter[tuple[str, Any]]()
    try:
        for number in range(10):
            members = {name: Member(Case(at, name), pool, "here", thorough=True) for name in ("eager", "sdpa")}
            baselines, rule = [members["eager"]], Length(0.01)
            Replicate([*members.values()], baselines, rule, seed=number, number=0).measure(60.0)
            if bad := [f"{name}: {each.status}: {each.detail}" for name, each in members.items() if not each.is_ok]:
                raise FailedError("; ".join(bad))
            peaks.update((name, member.metrics["peak_bytes"]) for name, member in members.items())
    finally:
        pool.close()
    predicted = {name: peak_bytes(Case(at, name)) for name in ("eager", "sdpa")}
    said = ", ".join(f"{name} {count} times {size} bytes" for (name, size), count in peaks.items())
    said += f"; by the count of tensors {predicted['eager']} and {predicted['sdpa']}"
    if {*peaks} != {*predicted.items()}:
        raise FailedError(said)
    return said


def twins(drill: Drill) -> str:
    """A/A at six shapes: eager against a copy of itself."""
    shapes = [(50, 384, 6), (100, 64, 4), (197, 192, 3), (197, 384, 6), (256, 256, 4), (300, 96, 6)]
    points = [drill.at(batch=8, num_tokens=n, channels=c, num_heads=h) for n, c, h in shapes]
    table = drill.run("twins", ("eager", TWIN), points, processes=4 if drill.is_gpu else 3, budget_s=1.5)
    rows = table[table["implementation"] == TWIN]
    print(rows[["num_tokens", "speedup", "speedup_low", "speedup_high"]].to_string())
    out = int(((rows["speedup_low"] > 1) | (rows["speedup_high"] < 1)).sum())
    said = f"ratios {', '.join(f'{ratio:.3f}' for ratio in rows['speedup'])}; {out} of {len(rows)} intervals exclude 1"
    if out > 1 or len(rows) < len(shapes):
        raise FailedError(said)
    return said


def launch(drill: Drill) -> str:
    """Measure a tiny point: its rows are bound by the launch of kernels, those of a large one are not."""
    drill.need_gpu("it has launches")
    from bench.analyse.flags import launch_bound
    from bench.show.rows import plain

    points = [drill.at(batch=1, num_tokens=16, channels=64, num_heads=2),
              drill.at(batch=32, num_tokens=1024, channels=768, num_heads=12)]  # fmt: skip
    rows = [row for row in plain(drill.run("launch", ("eager", "sdpa"), points)) if row["status"] == "ok"]
    said = ", ".join(f"N={row['num_tokens']} {row['implementation']}: host {row['host_s'] * 1e6:.0f} us of "
                     f"{row['latency_s'] * 1e6:.0f}" for row in rows)  # fmt: skip
    if not rows or any(launch_bound(row) is not (row["num_tokens"] == 16) for row in rows):
        raise FailedError(said)
    return said


def recompile(drill: Drill) -> str:
    """Compile at several shapes one after the other: each has its own graph, and none is a fallback."""
    shapes = (50, 64, 100, 197, 256, 300, 384, 512, 577) if drill.is_gpu else (50, 64)
    points = [drill.at(batch=2, num_tokens=n, channels=64, num_heads=2) for n in shapes]
    table = drill.run("recompile", ("eager", "compiled_eager", "compiled_sdpa"), points, processes=1)
    rows = table[table["implementation"] != "eager"]
    said = f"{dict(Counter(rows['status']))} at {len(shapes)} shapes"
    if {*rows["status"]} != {"ok"}:
        raise FailedError(f"{said}: {'; '.join({*rows['detail'].dropna()})}")
    return f"{said}; first compilations took {rows['compile_cold_s'].median():.1f} s in the median"


def quick(drill: Drill) -> str:
    """Measure the sweep quick as a user would, in bfloat16 and float32."""
    small = [] if drill.is_gpu else ["--num-tokens", "50", "--num-heads", "6", "--channels", "384"]
    dtypes = "bfloat16,float32" if drill.is_gpu else "float32"
    return _ends(drill.bench("quick", "--dtype", dtypes, *small))


def vit(drill: Drill) -> str:
    """Measure shapes of models in use."""
    if not drill.is_gpu:
        raise SkippedError("needs a CUDA device: quick has such shapes on the CPU")
    shape = ["--num-tokens", "197,577", "--batch", "8,64", "--dtype", "bfloat16"]
    return _ends(drill.bench("vit", "--sweep", "vit", *shape))


def papers(drill: Drill) -> str:
    """Measure the settings of two publications and show their figures beside ours."""
    half = Drill(drill.device, drill.folder, drill.most_s / 2 + ENDING_S / 2)
    names = ("fa2-paper", "hubhop-layer") if drill.is_gpu else ("hubhop-layer",)
    said = []
    for name in names:
        small = [] if drill.is_gpu else ["--batch", "1", "--impl", "eager,sdpa"]
        table = half.bench(name, "--sweep", name, *small, budget_s=0.5)
        command = [sys.executable, "-m", "bench", "show", "--reference", str(drill.folder / name)]
        shown = subprocess.run(command, capture_output=True, text=True, check=False)
        print(shown.stdout, shown.stderr)
        said.append(f"{name}: {_ends(table)}, show --reference ended with {shown.returncode}")
        if drill.is_gpu and shown.returncode:  # on a CPU the small batch has no published figure
            raise FailedError(said[-1])
    return "; ".join(said)


def profile(drill: Drill) -> str:
    """Profile two cases with their page, and read that the kernels of the device are in it."""
    at = drill.at(batch=8, num_tokens=197, channels=192, num_heads=3)
    drill.run("profile", ("eager", "sdpa"), [at], processes=1)
    folder = drill.folder / "profile"
    command = [sys.executable, "-m", "bench", "profile", str(folder), "--report"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    page = folder / "profile.html"
    if done.returncode or not page.exists():
        raise FailedError(f"status {done.returncode}: {(done.stderr.strip().splitlines() or ['no page'])[-1]}")
    if drill.is_gpu and not re.search(r"gemm|flash|fmha|cutlass|elementwise", page.read_text(encoding="utf-8")):
        raise FailedError("the page names no kernel of the device")
    traces = sorted(path.name for path in folder.rglob("*.json.gz"))
    return f"a page of {page.stat().st_size / 2**10:.0f} KiB, {len(traces)} traces"


def _ends(table: pd.DataFrame) -> str:
    """Return the statuses and the winners of a run; raises FailedError if something of it is wrong."""
    statuses = Counter(table["status"])
    bad = table[~table["status"].isin(["ok", "unsupported", "skipped"])]
    said = f"{dict(statuses)} at {table['num_tokens'].nunique()} lengths"
    if len(bad) or not statuses["ok"]:
        first = bad.iloc[0] if len(bad) else None
        raise FailedError(said + (f"; {first['implementation']}: {first['detail']}" if first is not None else ""))
    best = table[table["rank"] == 1]["implementation"]
    return f"{said}; fastest: {dict(Counter(best))}"


def main(name: str, device: str, folder: str, most_s: str) -> int:
    """Try a part, and return its exit status."""
    drill = Drill(device, Path(folder), float(most_s))
    drill.folder.mkdir(parents=True, exist_ok=True)
    try:
        if drill.is_gpu and not torch.cuda.is_available():
            raise SkippedError("this machine has no CUDA device")
        print(globals()[name](drill), flush=True)  # each part that gpu.PARTS names is a function above
    except SkippedError as reason:
        print(reason)
        return SKIPPED
    except FailedError as reason:
        print(reason)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
