"""Traces for TensorBoard's plugin torch-tb-profiler 0.4.3, which reads an older format than torch writes."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import profile, tensorboard_trace_handler

from bench.plan.case import Case
from bench.profiling import labels, perfetto
from bench.profiling.capture import activities
from bench.store.profile import TRACES, file_name

FOLDER = "tensorboard"
"""The folder for TensorBoard in a run's traces; each case in it is a run for TensorBoard."""

CALLS = 3
"""Calls in a trace: the plugin's steps."""

SETTINGS: dict[str, Any] = {
    "record_shapes": True,  # operators by the shapes of their inputs
    "profile_memory": True,  # the memory view
    "with_stack": True,  # the module view
    "experimental_config": _ExperimentalConfig(verbose=True),  # stacks beside operators
}
"""The profiler's settings that the plugin's views need."""

CATEGORIES = {
    "user_annotation": "cpu_op",  # stages: the plugin drops labels, and shows operators
    "cuda_runtime": "runtime",
    "cuda_driver": "runtime",  # Triton's kernels are launched by the driver
}
"""The plugin's own category for each category that it doesn't know."""


def record(call: Callable[[], object], run: Path, case: Case) -> Path:
    """Profile CALLS warm calls of a case with the plugin's settings, and return the file of their trace.

    An earlier trace of the case is replaced.
    """
    with labels.call(case):
        call()  # the first label of a process imports modules, which would be in the trace
    with profile(activities=activities(case.point.device), **SETTINGS) as profiler:
        for _ in range(CALLS):
            with labels.call(case):
                call()
        if case.point.device != "cpu":
            torch.cuda.synchronize(case.point.device)
    return _write(profiler, run / TRACES / FOLDER / file_name(case), case)


def _write(profiler: profile, folder: Path, case: Case) -> Path:
    if folder.exists():
        shutil.rmtree(folder)
    worker = case.implementation.replace(":", ".")  # the plugin cuts the run's long name, but shows this one whole
    tensorboard_trace_handler(str(folder), worker, use_gzip=True)(profiler)
    (path,) = folder.iterdir()
    perfetto.write(for_plugin(perfetto.repaired(perfetto.read(path)), labels.name(case)), path)
    return path


def for_plugin(trace: dict[str, Any], call: str) -> dict[str, Any]:
    """Return a trace in the plugin's format: labels become operators, and those named `call` become numbered steps."""
    events = trace["traceEvents"]
    starts = sorted(event["ts"] for event in events if _is_call(event, call))
    steps = {start: f"ProfilerStep#{number}" for number, start in enumerate(starts)}
    return {**trace, "traceEvents": [_event(event, call, steps) for event in events]}


def _event(event: dict[str, Any], call: str, steps: dict[float, str]) -> dict[str, Any]:
    if _is_call(event, call):
        return {**event, "name": steps[event["ts"]]}
    category = CATEGORIES.get(event.get("cat", ""))
    return {**event, "cat": category} if category else event


def _is_call(event: dict[str, Any], call: str) -> bool:
    return event.get("cat") == "user_annotation" and event["name"] == call
