"""Traces as TensorBoard's profiler plugin shows them: torch-tb-profiler 0.4.3, which knows older traces than ours."""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

from torch._C._profiler import _ExperimentalConfig
from torch.profiler import profile, tensorboard_trace_handler

from bench.plan.case import Case
from bench.profiling import labels
from bench.store.profile import TRACES, file_name

FOLDER = "tensorboard"
"""The folder within a run's traces that TensorBoard is given; each case in it is one of its runs."""

SETTINGS: dict[str, Any] = {
    "record_shapes": True,  # operators by the shapes of their inputs
    "profile_memory": True,  # the memory view
    "with_stack": True,  # the module view
    "experimental_config": _ExperimentalConfig(verbose=True),  # stacks beside operators
}
"""What the profiler is asked for, so that every view has something to show."""

CATEGORIES = {
    "user_annotation": "cpu_op",  # stages: the plugin drops labels, and shows operators
    "cuda_runtime": "runtime",
    "cuda_driver": "runtime",  # Triton's kernels are launched by the driver
}
"""The plugin's word for a category that it doesn't know."""


def write(profiler: profile, run: Path, case: Case) -> dict[str, Any]:
    """Write a case's trace for the plugin in place of an earlier one, and return the trace as torch made it.

    torch gives a trace away only once, so whoever else needs it takes it from here.
    """
    folder = run / TRACES / FOLDER / file_name(case)
    if folder.exists():
        shutil.rmtree(folder)
    worker = case.implementation.replace(":", ".")  # shown beside the run, whose long name the plugin cuts
    tensorboard_trace_handler(str(folder), worker, use_gzip=True)(profiler)
    (path,) = folder.iterdir()
    trace = read(path)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump(for_plugin(trace, labels.name(case)), file)
    return trace


def read(path: Path) -> dict[str, Any]:
    """Return a trace that torch wrote.

    With stacks it may hold names that are neither UTF-8 nor JSON: those of functions that Python had freed by then.
    """
    text = gzip.decompress(path.read_bytes()).decode("utf-8", errors="replace")
    trace: dict[str, Any] = json.loads(text, strict=False)
    return trace


def for_plugin(trace: dict[str, Any], call: str) -> dict[str, Any]:
    """Return a trace in the plugin's words: labels are operators, and those named `call` its steps, in order of time.

    The events come last, because the plugin cuts a GPU's trace at its last bracket to add counters.
    """
    events = trace["traceEvents"]
    starts = sorted(event["ts"] for event in events if _is_call(event, call))
    steps = {start: f"ProfilerStep#{number}" for number, start in enumerate(starts)}
    rest = {key: value for key, value in trace.items() if key != "traceEvents"}
    return {**rest, "traceEvents": [_event(event, call, steps) for event in events]}


def _event(event: dict[str, Any], call: str, steps: dict[float, str]) -> dict[str, Any]:
    if _is_call(event, call):
        return {**event, "name": steps[event["ts"]]}
    category = CATEGORIES.get(event.get("cat", ""))
    return {**event, "cat": category} if category else event


def _is_call(event: dict[str, Any], call: str) -> bool:
    return event.get("cat") == "user_annotation" and event["name"] == call
