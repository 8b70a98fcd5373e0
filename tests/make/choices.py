"""Tables of choices for tests, as `export` writes them."""

import json
from pathlib import Path
from typing import Any

import torch

from bench.machine.facts import cpu_model
from tests.make.points import TINY

POINT: dict[str, Any] = {
    **{name: TINY[name] for name in ("layer", "device", "dtype", "mode", "mask", "batch", "num_heads", "threads")},
    "num_tokens": 8,
    "channels": 12,
    "head_width": 4,
    "implementation": "manual",
    "slowdown_high": 1.01,
    "speedup": 1.2,
    "speedup_low": 1.1,
    "speedup_high": 1.3,
}


def written(folder: Path, *points: dict[str, Any], name: str = "table.json", **changes: Any) -> Path:
    """Return the file of a table with these points, POINT with some values changed, measured on this machine."""
    threads = torch.get_num_threads()
    content = {
        "format": "attention-bench table",
        "schema_version": 1,
        "run": "run",
        "measured_at": "2026-01-31T12:00:00Z",
        "environment": {"cpu": cpu_model(), "gpus": {}, "torch": torch.__version__},
        "points": [{**POINT, "threads": threads, **point} for point in points or ({},)],
    }
    path = folder / name
    path.write_text(json.dumps({**content, **changes}), encoding="utf-8")
    return path
