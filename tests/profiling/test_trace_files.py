"""Traces for TensorBoard's plugin, whose own loader reads them."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from bench.measure import subjects, workload
from bench.plan.case import Case
from bench.profiling import trace_files
from bench.store.profile import file_name
from tests.make.points import point
from tests.profiling import gpu_trace

pytestmark = pytest.mark.slow

POINT = point(batch=1, num_tokens=577, channels=192, num_heads=3, mode="train")
STAGES = {
    "qkv projection", "split heads", "scale", "scores", "softmax",
    "weighted values", "merge heads", "output projection", "skip",
}  # fmt: skip
CALLS = trace_files.CALLS


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run with a trace of stepwise, under a name with a colon; it was written twice."""
    run = tmp_path_factory.mktemp("run")
    name = "impls.whole.stepwise:adapt"
    work = workload.make(POINT)
    call = subjects.step(subjects.subject(work, name), work)
    paths = {trace_files.record(call, run, Case(POINT, name)) for _ in range(2)}
    (path,) = run.glob("traces/tensorboard/*/*")
    assert paths == {path}
    assert (path.parent.name, ":" in str(path.relative_to(run))) == (file_name(Case(POINT, name)), False)
    return run


@pytest.fixture(scope="module")
def shown(run: Path) -> Any:
    """Return what the plugin shows of the trace."""
    from torch_tb_profiler.profiler.data import RunProfileData  # slow to import, and every worker collects this file
    from torch_tb_profiler.profiler.run_generator import RunGenerator

    (path,) = run.glob("traces/tensorboard/*/*")
    data = RunProfileData.parse("stepwise", "1", str(path), str(run))
    return RunGenerator("stepwise", "1", data).generate_run_profile()


def test_the_plugin_has_its_views_and_times_each_call(shown: Any) -> None:
    """Without a GPU there are no kernels. Every call is one of its steps, most of it spent in operators."""
    assert [view.display_name for view in shown.views] == ["Overview", "Operator", "Trace", "Memory", "Module"]
    assert len(shown.overview["steps"]["rows"]) == CALLS
    share = {part["name"]: part["extra"] for part in shown.overview["performance"][0]["children"]}
    assert share["CPU Exec"] > 50


def test_stages_are_operators_with_their_stacks_and_memory(shown: Any) -> None:
    """Each ran as often as the layer, and leads to the file that spells it; the scores take H·N² floats a call."""
    calls = {row["name"]: row["calls"] for row in shown.operation_table_by_name["data"]}
    assert calls.keys() >= STAGES | {"aten::bmm", "aten::_softmax"}
    assert calls["softmax"] == calls["scores"] == calls["weighted values"] == CALLS
    (stack,) = shown.operation_stack_by_name["scale"]["data"]
    assert "impls/whole/stepwise.py" in stack["call_stack"]
    memory = {row[0]: row for row in shown.get_memory_stats()["rows"]["CPU"]}
    assert memory["softmax"][6] == pytest.approx(CALLS * 3 * 577 * 577 * 4 / 1024, abs=0.01)


def test_what_torch_writes_beside_json_costs_a_name_and_not_the_trace(tmp_path: Path) -> None:
    """Stacks may hold bytes that are neither UTF-8 nor allowed in JSON, and NaN is not JSON either."""
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents": [{"name": "a.py(0): \xf1\x03led", "dur": NaN}]}'))
    (event,) = trace_files.read(path)["traceEvents"]
    assert (event["name"].startswith("a.py(0)"), event["dur"]) == (True, None)


def test_kernels_of_a_gpu_belong_to_the_operators_and_stages_that_launched_them(tmp_path: Path) -> None:
    """By the runtime or by the driver; the stage's second appearance on the GPU is no operator of its own.

    The plugin can add the GPU's use, because the events of the trace come last.
    """
    from torch_tb_profiler.profiler.data import RunProfileData
    from torch_tb_profiler.profiler.run_generator import RunGenerator

    before = json.dumps(gpu_trace.TRACE)
    trace = trace_files.for_plugin(gpu_trace.TRACE)
    assert json.dumps(gpu_trace.TRACE) == before
    shown = RunGenerator("mine", "1", RunProfileData.from_json("mine", "1", trace)).generate_run_profile()
    rows = {row["name"]: row for row in shown.operation_table_by_name["data"]}
    assert (rows["softmax"]["calls"], rows["softmax"]["device_total_duration"]) == (1, 30)
    kernels = {tuple(row[:2]) for row in shown.kernel_op_table["data"]["rows"]}
    assert kernels == {(f"{name} kernel", name) for name in ("aten::softmax", "triton_poi_fused", "aten::mm")}
    path = tmp_path / "trace.json.gz"
    trace_files.write(trace, path)
    added = json.loads(gzip.decompress(shown.append_gpu_metrics(gzip.decompress(path.read_bytes()))))
    assert "GPU 0 Utilization" in {event["name"] for event in added["traceEvents"]}
