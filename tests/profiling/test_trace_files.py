"""Traces for TensorBoard's plugin, whose own loader reads them."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from bench.plan.case import Case
from bench.profiling import trace_files
from bench.profiling.worker import call_of
from bench.store.profile import CORE, file_name
from tests.make.points import point

pytestmark = pytest.mark.slow

CALLS = trace_files.CALLS


def shown(trace: Path) -> Any:
    """Return what the plugin shows of a trace."""
    from torch_tb_profiler.profiler.data import RunProfileData  # slow to import, and every worker collects this file
    from torch_tb_profiler.profiler.run_generator import RunGenerator

    data = RunProfileData.parse("mine", "1", str(trace), str(trace.parent))
    return RunGenerator("mine", "1", data).generate_run_profile()


def test_the_plugin_has_its_views_with_stages_as_operators(tmp_path: Path) -> None:
    """Each call is a step; a stage ran as often. The scores take H·N² floats a call, and an earlier trace is gone."""
    case = Case(point(batch=1, num_tokens=577, channels=192, num_heads=3, mode="train"), "graph")
    with call_of(case) as call:
        (path,) = {trace_files.record(call, tmp_path, case) for _ in range(2)}
    assert [*tmp_path.glob("traces/tensorboard/*/*")] == [path]
    assert path.parent.name == file_name(case)
    of = shown(path)
    assert [view.display_name for view in of.views] == ["Overview", "Operator", "Trace", "Memory", "Module"]
    assert len(of.overview["steps"]["rows"]) == CALLS
    calls = {row["name"]: row["calls"] for row in of.operation_table_by_name["data"]}
    lines = [name for name in calls if name.startswith(f"{CORE} of ViTAttention, impls/attend/eager.py")]
    assert {calls[line] for line in lines} == {calls["aten::_softmax"]} == {CALLS}
    (stack,) = of.operation_stack_by_name["aten::_softmax"]["data"]
    assert "graph" in stack["call_stack"]
    memory = {row[0]: row for row in of.get_memory_stats()["rows"]["CPU"]}
    assert pytest.approx(CALLS * 3 * 577 * 577 * 4 / 1024, abs=0.01) in [memory[line][6] for line in lines]


def event(name: str, start_us: float, duration_us: float, category: str, **more: Any) -> dict[str, Any]:
    """Return an event with a duration."""
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": start_us, "dur": duration_us, **more}


def launched(name: str, start_us: float, correlation: int, launch: str) -> list[dict[str, Any]]:
    """Return an operator, the launch of its kernel, and the kernel on a GPU, tied together by their ids."""
    ids = {"External id": correlation, "correlation": correlation}
    kernel = {"device": 0, "stream": 7, "grid": [8, 1, 1], "block": [128, 1, 1], "registers per thread": 32,
        "blocks per SM": 0.5, "est. achieved occupancy %": 40, "shared memory": 0}  # fmt: skip
    return [
        event(name, start_us, 20.0, "cpu_op", args={"External id": correlation}),
        event("launch", start_us + 5, 5.0, launch, args=ids),
        event(f"{name} kernel", start_us + 15, 30.0, "kernel", args={**ids, **kernel}) | {"pid": 0, "tid": 7},
    ]


TRACE: dict[str, Any] = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "GPU", "totalGlobalMem": 1 << 34, "computeMajor": 9, "computeMinor": 0}],
    "traceEvents": [
        event("ProfilerStep#1", 100.0, 90.0, "user_annotation"),
        event("ProfilerStep#2", 200.0, 90.0, "user_annotation"),
        event("softmax", 110.0, 30.0, "user_annotation"),
        *launched("aten::softmax", 112.0, 1, "cuda_runtime"),
        *launched("triton_poi_fused", 145.0, 2, "cuda_driver"),
        *launched("aten::mm", 210.0, 3, "cuda_runtime"),
        event("softmax", 127.0, 30.0, "gpu_user_annotation"),
        event("a.py(0): freed", 270.0, 5.0, "python_function"),
    ],
    "traceName": "a name with [brackets].json",
}
"""Two calls on a GPU with the categories of newer CUDA traces: a stage and three kernels."""


def test_kernels_of_a_gpu_belong_to_the_operators_and_stages_that_launched_them(tmp_path: Path) -> None:
    """By the runtime or by the driver; the stage's second appearance on the GPU is no operator of its own.

    Stacks may hold bytes that are neither UTF-8 nor allowed in JSON, and NaN is not JSON either. The plugin can add the
    GPU's use, because the events of the trace come last.
    """
    path = tmp_path / "trace.json.gz"
    written = json.dumps(TRACE).encode().replace(b"freed", b"\xf1\x03reed").replace(b"0.5", b"NaN")
    path.write_bytes(gzip.compress(written))
    trace_files.adapt(path)
    of = shown(path)
    rows = {row["name"]: row for row in of.operation_table_by_name["data"]}
    assert (rows["softmax"]["calls"], rows["softmax"]["device_total_duration"]) == (1, 30)
    kernels = {tuple(row[:2]) for row in of.kernel_op_table["data"]["rows"]}
    assert kernels == {(f"{name} kernel", name) for name in ("aten::softmax", "triton_poi_fused", "aten::mm")}
    added = json.loads(gzip.decompress(of.append_gpu_metrics(gzip.decompress(path.read_bytes()))))
    assert "GPU 0 Utilization" in {each["name"] for each in added["traceEvents"]}
