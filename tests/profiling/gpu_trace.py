"""A trace of a GPU, written by hand with the categories of newer CUDA traces; no GPU of ours wrote it."""

from typing import Any


def label(name: str, start_us: float, duration_us: float, category: str = "user_annotation") -> dict[str, Any]:
    """Return an event with a duration."""
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": start_us, "dur": duration_us}


def launched(name: str, start_us: float, correlation: int, launch: str) -> list[dict[str, Any]]:
    """Return an operator, the launch of its kernel, and the kernel on a GPU, tied together by their ids."""
    ids = {"External id": correlation, "correlation": correlation}
    kernel = {"device": 0, "stream": 7, "grid": [8, 1, 1], "block": [128, 1, 1], "registers per thread": 32}
    return [
        {**label(name, start_us, 20.0, "cpu_op"), "args": {"External id": correlation}},
        {**label("launch", start_us + 5, 5.0, launch), "args": ids},
        {
            **label(f"{name} kernel", start_us + 15, 30.0, "kernel"),
            "pid": 0,
            "tid": 7,
            "args": {**ids, **kernel, "blocks per SM": 0.5, "est. achieved occupancy %": 40, "shared memory": 0},
        },
    ]


TRACE: dict[str, Any] = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "GPU", "totalGlobalMem": 1 << 34, "computeMajor": 9, "computeMinor": 0}],
    "traceEvents": [
        label("mine call", 200.0, 90.0),
        label("mine call", 100.0, 90.0),
        label("softmax", 110.0, 30.0),
        *launched("aten::softmax", 112.0, 1, "cuda_runtime"),
        *launched("triton_poi_fused", 145.0, 2, "cuda_driver"),
        *launched("aten::mm", 210.0, 3, "cuda_runtime"),
        label("mine call", 127.0, 60.0, "gpu_user_annotation"),
        label("softmax", 127.0, 30.0, "gpu_user_annotation"),
        {**label("Memcpy HtoD", 270.0, 5.0, "gpu_memcpy"), "args": {"External id": 3, "correlation": 3, "device": 0}},
    ],
    "displayTimeUnit": "ms",
    "traceName": "a name with [brackets].json",
}
"""Two calls of an implementation 'mine', the later first: a stage, three kernels and a copy."""
