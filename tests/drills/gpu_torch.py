"""The parts of the drill on a GPU that use torch in their own process: `python -m tests.drills.gpu_torch POINT…`.

As a program it times the same layer under two names without a hold, and prints the ratio at each point.
"""

import importlib.metadata
import json
import statistics
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from itertools import product
from typing import Any

import torch

from bench.measure import cuda, workload
from bench.measure.clock import Call, timed
from bench.measure.devices import device
from bench.plan.device import COLD, CPU, HOT, kind
from impls.catalogue import IMPLEMENTATIONS
from impls.contract import Unsupported
from tests.children import in_child
from tests.drills.gpu import FailedError, judged
from tests.make.checks import SHAPES, compared, expected
from tests.make.points import point

CYCLES = 2_000_000
"""The shortest kernel of known length: about a millisecond."""

NEAR = 0.02
"""Times agree that differ by less than this share."""

LEAST_EVENT_S = 5e-6
"""A pair of events with nothing between them must show less."""

PAUSE_S = 1e-3
"""By so much the host part of a call is slowed."""

REPEATS = 15

CHECKED_ON_CPU = ("eager", "sdpa")
"""The implementations that the rehearsal checks: tests check all on a CPU."""

pause: Callable[[float], object] = time.sleep


def imports(name: str) -> str:
    """Import what the suite needs, and compute once on the device."""
    said = [f"torch {torch.__version__}", f"CUDA {torch.version.cuda}", f"cuDNN {torch.backends.cudnn.version()}"]
    if obstacle := device(name).obstacle:
        raise FailedError(f"{', '.join(said)}: {obstacle}")
    if torch.device(name).type == "cuda":
        facts = torch.cuda.get_device_properties(name)
        said += [facts.name, f"{facts.total_memory >> 30} GiB", f"L2 of {facts.L2_cache_size >> 20} MiB"]
    total = torch.ones(64, 64, device=name).mm(torch.ones(64, 64, device=name)).sum().item()
    if total != 64**3:
        raise FailedError(f"{', '.join(said)}: a product of ones adds up to {total}, expected {64**3}")
    try:
        said.append(f"Triton {importlib.metadata.version('triton')}")
    except importlib.metadata.PackageNotFoundError:
        said.append("no Triton")
    return ", ".join(said)


def forks(name: str) -> str:
    """Use the device in a process forked from one that has imported the suite, and from one with the compiler too."""

    def use() -> str:
        torch.ones(8, device=name).sum().item()
        return "ok"

    def after_imports() -> str:
        import_module("torch._inductor.compile_fx")  # to compile takes longer than this part may
        return in_child(use)

    plain = in_child(use)
    said = f"{name} in a process forked after imports: {plain}", f"with the compiler's: {in_child(after_imports)}"
    return judged(said, plain != "ok")


def _device_s(call: Call, timing: str = HOT) -> float:
    timer = cuda.timer(timing)
    return statistics.median(timed(timer, call).call_s for _ in range(REPEATS))


def known(_name: str) -> str:
    """Time kernels of 1, 2 and 4 times a length, which must be in proportion, and an empty pair of events."""
    times_s = [_device_s(partial(cuda._sleep, CYCLES * factor)) for factor in (1, 2, 4)]
    off = max((time_s / times_s[0] / factor - 1 for factor, time_s in zip((1, 2, 4), times_s, strict=True)), key=abs)
    event_s = cuda.event_s()
    times = ", ".join(f"{time_s * 1e3:.3f} ms" for time_s in times_s)
    said = [f"{times} for 1, 2 and 4 times the cycles, off by {off:+.1%} at most"]
    said += [f"an empty pair of events {event_s * 1e6:.2f} us"]
    return judged(said, abs(off) > NEAR or event_s > LEAST_EVENT_S)


def slowed(_name: str) -> str:
    """Slow the host between two kernels of a call: its device time stays, or the timer says why it has none."""

    def call(host_s: float) -> None:
        cuda._sleep(CYCLES // 10)
        if host_s:
            pause(host_s)
        cuda._sleep(CYCLES // 10)

    said, wrong = [], False
    for timing in (COLD, HOT):
        plain_s = _device_s(partial(call, 0.0), timing)
        try:
            slow_s = _device_s(partial(call, PAUSE_S), timing)
        except Unsupported as reason:
            said.append(f"{timing}: {reason}")
            continue
        said.append(f"{timing}: {plain_s * 1e6:.1f} us, with {PAUSE_S * 1e3:g} ms of the host {slow_s * 1e6:.1f} us")
        wrong |= abs(slow_s / plain_s - 1) > NEAR
    return judged(said, wrong)


def checked(names: Sequence[str], mode: str, dtype: str, device: str) -> dict[str, tuple[Counter[str], float]]:
    """Return of each implementation how often the check accepted it, its other results, and its error in tolerances."""
    of = {name: (Counter[str](), 0.0) for name in names}
    for shape in SHAPES:
        work = workload.make(point(**shape, mode=mode, dtype=dtype, device=device, timing=kind(device).timings[0]))
        checks = cache(partial(expected, work))  # the same for all
        for name, (said, severity) in of.items():
            try:
                result = compared(workload.subject(work, name), work, checks())
                said[result.reason or "accepted"] += 1
                of[name] = said, max(severity, result.severity)
            except Unsupported as reason:
                said[f"unsupported: {str(reason)[:70]}"] += 1
            except Exception as error:
                said[f"{type(error).__name__}: {' '.join(str(error).split())[:70]}"] += 1
    return of


def correct(name: str) -> str:
    """Check all implementations that aren't compiled at twelve odd shapes, in each dtype, in inference and train."""
    warnings.simplefilter("ignore")  # torch says there why a backend is not used, and so do the reasons
    refused, accepted, is_cpu = [], 0, kind(name) is CPU
    dtypes = ("float32",) if is_cpu else ("float32", "bfloat16", "float16")
    ours = [each for each, entry in IMPLEMENTATIONS.items() if not (entry.packages or entry.compiles)]
    names = CHECKED_ON_CPU if is_cpu else ours
    for dtype, mode in product(dtypes, ("inference", "train")):
        for each, (said, severity) in checked(names, mode, dtype, name).items():
            accepted += said["accepted"]
            wrong = {text: count for text, count in said.items() if not text.startswith(("accepted", "unsupp"))}
            refused += [f"{each} {dtype} {mode}: {text} ({count})" for text, count in wrong.items()]
            print(f"{dtype} {mode} {each}: {dict(said)}, at most {severity:.0%} of the tolerance", flush=True)
    accepts = f"{accepted} checks of {len(names)} implementations accepted, none refused, in {', '.join(dtypes)}"
    return judged(refused or [accepts], refused)


def _by_events_alone(call: Call) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    call()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3


def unheld(**columns: Any) -> float:
    """Return the ratio of a layer's times under two names in this process, by events around one call without a hold."""
    work = workload.make(point(**columns))
    xs = work.inputs()
    calls = [partial(workload.subject(work, "sdpa").function, *xs) for _ in range(2)]
    with work.gradient_mode():
        times_s = [[_by_events_alone(call) for call in calls] for _ in range(4 * REPEATS)][REPEATS:]
    first_s, second_s = (statistics.median(each) for each in zip(*times_s, strict=True))
    return float(first_s / second_s)


def main(*words: str) -> None:
    """Print the ratio at each point, whose columns are JSON."""
    for word in words:
        print("ratio", unheld(**json.loads(word)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
