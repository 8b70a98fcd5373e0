"""The trace of some calls for TensorBoard: its plugin, torch-tb-profiler 0.4.3, reads an older format than torch's."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch._C._profiler import _ExperimentalConfig
from torch.profiler import profile, schedule

from bench.measure import clock
from bench.measure.devices import device
from bench.plan.case import Case
from bench.store.profile import TRACES, file_name

FOLDER = "tensorboard"
"""The folder for TensorBoard in a run's traces; TensorBoard sees each case in it as a run."""

CALLS = 3
"""The calls in a trace, which are the plugin's steps."""

SETTINGS: dict[str, Any] = {
    "record_shapes": True,  # operators by the shapes of their inputs
    "profile_memory": True,  # the memory view
    "with_stack": True,  # the module view
    "experimental_config": _ExperimentalConfig(verbose=True),  # stacks of operators
}
"""The profiler's settings that the plugin's views need."""

CATEGORIES = {
    "user_annotation": "cpu_op",  # stages: the plugin drops labels, but shows operators
    "cuda_runtime": "runtime",
    "cuda_driver": "runtime",  # Triton's kernels are launched by the driver
}
"""The plugin's category for each category that it doesn't know."""


def record(call: Callable[[], object], run: Path, case: Case) -> Path:
    """Profile CALLS warm calls of a case with the plugin's settings, and return the file of their trace.

    It replaces an earlier trace of the case.
    """
    folder = run / TRACES / FOLDER / file_name(case)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    worker = case.implementation.replace(":", ".")  # the plugin shows this name in full, unlike the run's
    path = folder / f"{worker}.pt.trace.json.gz"
    clock.prepare(call, 1 + CALLS)
    on = device(case.point.device)
    steps = schedule(wait=0, warmup=1, active=CALLS, repeat=1)
    with profile(activities=on.activities, schedule=steps, **SETTINGS) as profiler:
        for _ in range(1 + CALLS):
            call()
            on.synchronize()
            profiler.step()
    profiler.export_chrome_trace(str(path))
    adapt(path)
    return path


def adapt(path: Path) -> None:
    """Rewrite torch's trace with the plugin's categories; labels become operators.

    torch's trace may hold NaN, which is not JSON, and with stacks also names of freed functions in invalid UTF-8.
    Events come last, because the plugin cuts a GPU's trace at its last bracket to add events.
    """
    text = gzip.decompress(path.read_bytes()).decode("utf-8", errors="replace")
    trace = json.loads(text, strict=False, parse_constant=lambda _: None)
    events = trace.pop("traceEvents")
    for event in events:
        event["cat"] = CATEGORIES.get(event.get("cat"), event.get("cat"))
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump({**trace, "traceEvents": events}, file, allow_nan=False)
