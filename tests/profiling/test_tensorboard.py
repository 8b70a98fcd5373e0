"""Traces in TensorBoard's plugin: its own loader reads them, and each of its routes has something to show."""

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.application import TensorBoardWSGI
from tensorboard.plugins.base_plugin import TBContext
from torch_tb_profiler.plugin import TorchProfilerPlugin
from torch_tb_profiler.profiler.data import RunProfileData
from torch_tb_profiler.profiler.run_generator import RunGenerator
from werkzeug.test import Client

from bench.measure import workload
from bench.plan.case import Case
from bench.profiling import perfetto, tensorboard
from bench.store.profile import file_name
from tests.points import point
from tests.profiling import gpu_trace

pytestmark = pytest.mark.slow

POINT = point(batch=1, num_tokens=577, channels=192, num_heads=3, mode="train")
STAGES = {
    "qkv projection", "split heads", "scale", "scores", "softmax",
    "weighted values", "merge heads", "output projection", "skip",
}  # fmt: skip
CALLS = tensorboard.CALLS
GPU = "on-a-gpu-mine"
LOADING_S = 120.0


def recorded(implementation: str, run: Path) -> Path:
    """Write the trace of some calls of a case, and return its file."""
    work = workload.make(POINT)
    call = workload.step(workload.subject(work, implementation), work)
    return tensorboard.record(call, run, Case(POINT, implementation))


def name_of(implementation: str) -> str:
    """Return what the plugin calls the run of a case."""
    return file_name(Case(POINT, implementation))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run with traces of eager and stepwise, written twice, and one from a GPU."""
    run = tmp_path_factory.mktemp("run")
    for implementation in ("eager", "stepwise", "stepwise"):
        recorded(implementation, run)
    folder = run / "traces" / "tensorboard" / GPU
    folder.mkdir()
    perfetto.write(tensorboard.for_plugin(gpu_trace.TRACE, "mine call"), folder / "mine.1.pt.trace.json.gz")
    return run


@pytest.fixture(scope="module")
def plugin(run: Path) -> TorchProfilerPlugin:
    """Return the plugin once its loader has read every trace of the run."""
    plugin = TorchProfilerPlugin(TBContext(logdir=str(run / "traces" / "tensorboard")))
    deadline = time.monotonic() + LOADING_S
    while len(plugin._runs) < 3:
        assert time.monotonic() < deadline, f"loaded {list(plugin._runs)} alone"
        time.sleep(0.05)
    return plugin


def get(plugin: TorchProfilerPlugin, route: str, **query: str) -> bytes:
    """Return what TensorBoard answers a browser, which must be fine."""
    answer = Client(TensorBoardWSGI([plugin])).get(f"/data/plugin/pytorch_profiler{route}", query_string=query)
    assert answer.status_code == 200, answer.text
    packed = answer.headers.get("Content-Encoding") == "gzip"
    return gzip.decompress(answer.data) if packed else answer.data


def asked(plugin: TorchProfilerPlugin, route: str, run: str, **query: str) -> Any:
    """Return what a route says of the one profile of a run, whose worker is named after the implementation."""
    return json.loads(get(plugin, route, run=run, worker=run.rpartition("-")[2], span="1", **query))


def shown(trace: dict[str, Any]) -> Any:
    """Return what the plugin makes of a trace that is rewritten for it."""
    data = RunProfileData.from_json("mine", "1", tensorboard.for_plugin(trace, "mine call"))
    return RunGenerator("mine", "1", data).generate_run_profile()


def operators(table: dict[str, Any]) -> dict[str, int]:
    """Return the calls of each operator in the plugin's table."""
    return {row["name"]: row["calls"] for row in table["data"]}


@pytest.mark.parametrize("implementation", ["eager", "stepwise"])
def test_the_plugins_loader_finds_our_stages_as_operators(plugin: TorchProfilerPlugin, implementation: str) -> None:
    """Its loader reads the trace of N = 577, and each stage ran as often as the layer, or several times a call."""
    found = operators(asked(plugin, "/operation/table", name_of(implementation)))
    assert found.keys() >= STAGES | {"aten::bmm", "aten::_softmax"}
    assert found["softmax"] == found["scores"] == found["weighted values"] == CALLS


def test_views_say_which_process_and_profile_they_show(plugin: TorchProfilerPlugin) -> None:
    """A case has one of each, though it was written twice; without a GPU there are no kernels. Pages are served."""
    run = name_of("stepwise")
    assert set(json.loads(get(plugin, "/runs"))["runs"]) == {name_of("eager"), run, GPU}
    assert json.loads(get(plugin, "/workers", run=run, view="Overview")) == ["stepwise"]
    assert json.loads(get(plugin, "/spans", run=run, worker="stepwise")) == ["1"]
    views = json.loads(get(plugin, "/views", run=name_of("eager")))
    assert views == ["Overview", "Operator", "Trace", "Memory", "Module"]
    other = {"exp_run": run, "exp_worker": "stepwise", "exp_span": "1"}
    assert all(asked(plugin, route, name_of("eager"), **other) for route in ("/diff", "/diffnode"))
    pages = ("/index.js", "/index.html", "/trace_viewer_full.html", "/trace_embedding.html")
    assert all(len(get(plugin, page)) > 50 for page in pages)


def test_the_overview_times_each_call(plugin: TorchProfilerPlugin) -> None:
    """Every call is one of the plugin's steps, most of it spent in operators."""
    overview = asked(plugin, "/overview", name_of("eager"))
    assert [row[0] for row in overview["steps"]["rows"]] == [str(step) for step in range(CALLS)]
    share = {part["name"]: part["extra"] for part in overview["performance"][0]["children"]}
    assert share["CPU Exec"] > 50
    assert {"title": "Device Type", "value": "CPU"} in overview["environments"]


def test_the_operators_view_shows_shares_and_where_a_stage_was_called(plugin: TorchProfilerPlugin) -> None:
    """The pie holds the stages, and the stack of one leads to the file that spells eager."""
    run = name_of("eager")
    pie = asked(plugin, "/operation", run, group_by="OperationAndInputShape")
    assert any("aten::bmm" in name for name, _ in pie["host_self_time"]["rows"])
    (stack,) = asked(plugin, "/operation/stack", run, op_name="scale")["data"]
    assert "impls/attend/eager.py" in stack["call_stack"]


def test_the_memory_view_shows_who_allocated_what(plugin: TorchProfilerPlugin) -> None:
    """The scores of every call are as large as H·N² floats, as a table, a curve and a list of blocks."""
    scores_kib = 3 * 577 * 577 * 4 / 1024
    table = {row[0]: row for row in asked(plugin, "/memory", name_of("eager"))["rows"]["CPU"]}
    assert table["softmax"][6] == pytest.approx(CALLS * scores_kib, abs=0.01)
    assert len(asked(plugin, "/memory_curve", name_of("eager"))["rows"]["CPU"]) > CALLS
    blocks = asked(plugin, "/memory_events", name_of("eager"))["rows"]["CPU"]
    assert any(size == pytest.approx(scores_kib, abs=0.01) for _, size, *_ in blocks)


def test_the_module_view_shows_the_layer_and_its_parts(plugin: TorchProfilerPlugin) -> None:
    """The layer was called once a call, its two projections within it."""
    (layer,) = asked(plugin, "/module", name_of("eager"))["data"]
    assert (layer["name"], layer["occurences"]) == ("ViTAttention_0", CALLS)
    assert [part["occurences"] for part in layer["children"]] == [CALLS, CALLS]


def test_the_trace_view_shows_the_plugins_copy(plugin: TorchProfilerPlugin) -> None:
    """What its viewer is sent holds steps and stages, and the tree of operators the same."""
    names = {event["name"] for event in asked(plugin, "/trace", name_of("stepwise"))["traceEvents"]}
    assert names >= STAGES | {"ProfilerStep#0", "ProfilerStep#2"}
    assert "ProfilerStep#2" in str(asked(plugin, "/tree", name_of("stepwise")))


def test_the_kernel_view_shows_a_trace_of_a_gpu(plugin: TorchProfilerPlugin) -> None:
    """Kernels stand beside the operators that launched them, by the runtime or by the driver."""
    assert len(asked(plugin, "/kernel", GPU)["total"]["rows"]) == 3
    rows = asked(plugin, "/kernel/table", GPU, group_by="KernelNameAndOpName")["data"]["rows"]
    assert {(row[0], row[1]) for row in rows} == {
        (f"{name} kernel", name) for name in ("aten::softmax", "triton_poi_fused", "aten::mm")
    }
    assert asked(plugin, "/kernel/tc_pie", GPU)["total"]["rows"][1] == ["Not Using Tensor Cores", 1.0]
    assert "GPU 0 Utilization" in {event["name"] for event in asked(plugin, "/trace", GPU)["traceEvents"]}


def test_every_other_route_needs_several_processes(plugin: TorchProfilerPlugin) -> None:
    """The routes that no test above asks are those of the distributed view, for which we have no data."""
    source = Path(__file__).read_text(encoding="utf-8")
    unasked = {route for route in plugin.get_plugin_apps() if f'"{route}"' not in source}
    assert unasked == {f"/distributed/{part}" for part in ("gpuinfo", "overlap", "waittime", "commops")}


def test_stages_of_a_gpu_have_the_time_of_their_kernels() -> None:
    """A stage is an operator on the host; its second appearance on the GPU is no operator of its own."""
    rows = {row["name"]: row for row in shown(gpu_trace.TRACE).operation_table_by_name["data"]}
    assert (rows["softmax"]["calls"], rows["softmax"]["device_total_duration"]) == (1, 30)
    assert rows["softmax"]["host_total_duration"] == 30


def test_calls_are_numbered_in_order_of_time() -> None:
    """Whatever their order in the file; the label of a call on the GPU is none."""
    events = tensorboard.for_plugin(gpu_trace.TRACE, "mine call")["traceEvents"]
    steps = {event["name"]: event["ts"] for event in events if event["name"].startswith("ProfilerStep#")}
    assert steps == {"ProfilerStep#0": 100.0, "ProfilerStep#1": 200.0}


def test_a_trace_is_not_changed_by_being_rewritten() -> None:
    """The function returns another trace, of as many events, with all else that stood beside them."""
    before = json.dumps(gpu_trace.TRACE)
    rewritten = tensorboard.for_plugin(gpu_trace.TRACE, "mine call")
    assert json.dumps(gpu_trace.TRACE) == before
    assert set(rewritten) == set(gpu_trace.TRACE)
    assert len(rewritten["traceEvents"]) == len(gpu_trace.TRACE["traceEvents"])


@pytest.mark.parametrize(
    ("category", "understood"),
    [
        ("user_annotation", "cpu_op"),
        ("cuda_runtime", "runtime"),
        ("cuda_driver", "runtime"),
        ("cpu_op", "cpu_op"),
        ("kernel", "kernel"),
        ("gpu_memcpy", "gpu_memcpy"),
        ("gpu_user_annotation", "gpu_user_annotation"),
        ("python_function", "python_function"),
    ],
)
def test_categories(category: str, understood: str) -> None:
    """Only the names change that the plugin doesn't know."""
    trace = {"traceEvents": [gpu_trace.label("softmax", 0.0, 1.0, category), {"ph": "M", "name": "process_name"}]}
    first, second = tensorboard.for_plugin(trace, "mine call")["traceEvents"]
    assert (first["cat"], "cat" in second) == (understood, False)


def test_a_kernel_of_ones_own_is_a_file_that_every_system_can_hold(tmp_path: Path) -> None:
    """A colon in an implementation's name is none in its file's or its folder's."""
    path = recorded("impls.whole.stepwise:adapt", tmp_path)
    assert ":" not in str(path.relative_to(tmp_path))
