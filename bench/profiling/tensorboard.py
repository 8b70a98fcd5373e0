"""Traces as TensorBoard's profiler plugin shows them: torch-tb-profiler 0.4.3, which knows older traces than ours."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity, profile, tensorboard_trace_handler

from bench.plan.case import Case
from bench.profiling import labels
from bench.store.profile import TRACES, file_name

FOLDER = "tensorboard"
"""The folder within a run's traces that TensorBoard is given; each case in it is one of its runs."""

CALLS = 3
"""Calls in a trace: the plugin's steps."""

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


def record(call: Callable[[], object], run: Path, case: Case) -> Path:
    """Profile some warm calls of a case as the plugin's views want them, and return the file of their trace.

    An earlier trace of the case is replaced.
    """
    with labels.call(case):
        call()  # the first label of a process imports modules, which would stand in the trace
    with profile(activities=_activities(case), **SETTINGS) as profiler:
        for _ in range(CALLS):
            with labels.call(case):
                call()
        if case.point.device != "cpu":
            torch.cuda.synchronize(case.point.device)
    return _write(profiler, run / TRACES / FOLDER / file_name(case), case)


def _activities(case: Case) -> list[ProfilerActivity]:
    return [ProfilerActivity.CPU] if case.point.device == "cpu" else [ProfilerActivity.CPU, ProfilerActivity.CUDA]


def _write(profiler: profile, folder: Path, case: Case) -> Path:
    if folder.exists():
        shutil.rmtree(folder)
    worker = case.implementation.replace(":", ".")  # shown beside the run, whose long name the plugin cuts
    tensorboard_trace_handler(str(folder), worker, use_gzip=True)(profiler)
    (path,) = folder.iterdir()
    rewritten = for_plugin(read(path), labels.name(case))
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump(rewritten, file)
    return path


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
