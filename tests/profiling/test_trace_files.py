"""Traces for TensorBoard's plugin, whose own loader reads them."""

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
    """Return the plugin's output for a trace."""
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
