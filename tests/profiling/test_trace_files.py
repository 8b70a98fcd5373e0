"""Traces that viewers can read, for Perfetto and for TensorBoard's plugin, whose own loader reads them."""

import gzip
import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from bench.measure import workload
from bench.plan.case import Case
from bench.profiling import trace_files
from bench.profiling.trace_files import repaired
from bench.store.profile import file_name
from tests.make.points import point
from tests.profiling import gpu_trace
from tests.profiling.taken import TRAIN, captured

pytestmark = pytest.mark.slow

Event = dict[str, Any]

POINT = point(batch=1, num_tokens=577, channels=192, num_heads=3, mode="train")
STAGES = {
    "qkv projection", "split heads", "scale", "scores", "softmax",
    "weighted values", "merge heads", "output projection", "skip",
}  # fmt: skip
CALLS = trace_files.CALLS
GPU = "on-a-gpu-mine"
LOADING_S = 120.0


@pytest.fixture(scope="module", params=["stepwise", "sdpa"])
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the trace of a training step, as it lies on disk; NaN and the like would be refused."""
    path = tmp_path_factory.mktemp("trace") / "trace.json.gz"
    trace_files.write(repaired(trace_files.read(captured(TRAIN, request.param).median.trace)), path)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    read: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()), parse_constant=refuse)
    return read


def slices(trace: dict[str, Any]) -> dict[tuple[Any, Any], list[tuple[float, float]]]:
    """Return beginning and end of the complete events of each lane, in nanoseconds, outermost first."""
    lanes: dict[tuple[Any, Any], list[tuple[float, float]]] = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            start, end = round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)
            lanes[event["pid"], event["tid"]].append((start, end))
    return {lane: sorted(each, key=lambda span: (span[0], -span[1])) for lane, each in lanes.items()}


def test_slices_of_a_real_trace_nest(trace: dict[str, Any]) -> None:
    """On one lane a slice lies inside another one or beside it, and none has a negative duration."""
    events = trace["traceEvents"]
    assert len([event for event in events if event["ph"] == "X"]) > 50
    assert all(min(event["ts"], event.get("dur", 0)) >= 0 for event in events if "ts" in event)
    for spans in slices(trace).values():
        open_ends: list[float] = []
        for start, end in spans:
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1]
            open_ends.append(end)


def test_arrows_of_a_real_trace_are_whole(trace: dict[str, Any]) -> None:
    """Each has one start and one end, not before it, and both lie in slices of their lane."""
    arrows: dict[tuple[Any, Any], list[Event]] = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] in ("s", "t", "f"):
            arrows[event["cat"], event["id"]].append(event)
    assert arrows
    lanes = slices(trace)
    for ends in arrows.values():
        start, end = sorted(ends, key=lambda event: event["ts"])
        assert (start["ph"], end["ph"]) == ("s", "f")
        for event in ends:
            at = round(event["ts"] * 1000)
            assert any(first <= at <= last for first, last in lanes[event["pid"], event["tid"]])


def event(ph: str, ts: float, **more: Any) -> Event:
    """Return an event of the one lane of a planted trace."""
    return {"ph": ph, "ts": ts, "pid": 1, "tid": 1, "name": "x", **more}


def test_a_slice_that_never_ended_lasts_to_the_end() -> None:
    """A negative duration is how torch writes it; nothing else is changed but the origin of time."""
    before = [event("X", 100, dur=50), event("X", 110, dur=-109), event("i", 120, s="t")]
    after = repaired({"traceEvents": before, "baseTimeNanoseconds": 7})
    assert [(each["ts"], each.get("dur")) for each in after["traceEvents"]] == [(0, 50), (10, 40), (20, None)]
    assert after["baseTimeNanoseconds"] == 7 + 100_000


def test_loose_arrows_are_left_out() -> None:
    """An arrow without an end, and one that ends where no slice is, go; a whole one stays, whatever its category."""
    before = [
        event("X", 0, dur=10),
        *(event(ph, 5, id=1, cat="ac2g") for ph in "sf"),
        *(event("s", 5, id=number, cat="fwdbwd") for number in (1, 2)),
        event("f", 11, id=2, cat="fwdbwd"),
    ]
    after = repaired({"traceEvents": before})["traceEvents"]
    assert [(each["ph"], each.get("cat")) for each in after] == [("X", None), ("s", "ac2g"), ("f", "ac2g")]


def test_what_torch_writes_can_be_read_and_what_is_written_has_its_events_last(tmp_path: Path) -> None:
    """Stacks may hold bytes that are neither UTF-8 nor allowed in JSON; they cost one name, not the trace.

    A plugin of TensorBoard's cuts a trace at its last bracket.
    """
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents": [{"name": "a.py(0): \xf1\x03led"}]}'))
    assert trace_files.read(path)["traceEvents"][0]["name"].startswith("a.py(0)")
    trace_files.write({"traceEvents": [], "traceName": "another [1].json"}, path)
    assert gzip.decompress(path.read_bytes()).endswith(b'"traceName": "trace.json.gz", "traceEvents": []}')


def recorded(implementation: str, run: Path) -> Path:
    """Write the trace of some calls of a case, and return its file."""
    work = workload.make(POINT)
    call = workload.step(workload.subject(work, implementation), work)
    return trace_files.record(call, run, Case(POINT, implementation))


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
    trace_files.write(trace_files.for_plugin(gpu_trace.TRACE, "mine call"), folder / "mine.1.pt.trace.json.gz")
    return run


@pytest.fixture(scope="module")
def plugin(run: Path) -> Any:
    """Return the plugin once its loader has read every trace of the run."""
    from tensorboard.plugins.base_plugin import TBContext  # slow to import, and every worker collects this file
    from torch_tb_profiler.plugin import TorchProfilerPlugin

    plugin = TorchProfilerPlugin(TBContext(logdir=str(run / "traces" / "tensorboard")))
    deadline = time.monotonic() + LOADING_S
    while len(plugin._runs) < 3:
        assert time.monotonic() < deadline, f"loaded {list(plugin._runs)} alone"
        time.sleep(0.05)
    return plugin


def get(plugin: Any, route: str, **query: str) -> bytes:
    """Return what TensorBoard answers a browser, which must be fine."""
    from tensorboard.backend.application import TensorBoardWSGI
    from werkzeug.test import Client

    answer = Client(TensorBoardWSGI([plugin])).get(f"/data/plugin/pytorch_profiler{route}", query_string=query)
    assert answer.status_code == 200, answer.text
    packed = answer.headers.get("Content-Encoding") == "gzip"
    return gzip.decompress(answer.data) if packed else answer.data


def asked(plugin: Any, route: str, run: str, **query: str) -> Any:
    """Return what a route says of the one profile of a run, whose worker is named after the implementation."""
    return json.loads(get(plugin, route, run=run, worker=run.rpartition("-")[2], span="1", **query))


def test_the_plugins_loader_finds_our_stages_as_operators(plugin: Any) -> None:
    """The loader reads the trace of N = 577, and each stage ran as often as the layer, or several times a call."""
    rows = asked(plugin, "/operation/table", name_of("stepwise"))["data"]
    calls = {row["name"]: row["calls"] for row in rows}
    assert calls.keys() >= STAGES | {"aten::bmm", "aten::_softmax"}
    assert calls["softmax"] == calls["scores"] == calls["weighted values"] == CALLS


def test_views_say_which_process_and_profile_they_show(plugin: Any) -> None:
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


def test_the_overview_times_each_call(plugin: Any) -> None:
    """Every call is one of the plugin's steps, most of it spent in operators."""
    overview = asked(plugin, "/overview", name_of("eager"))
    assert [row[0] for row in overview["steps"]["rows"]] == [str(step) for step in range(CALLS)]
    share = {part["name"]: part["extra"] for part in overview["performance"][0]["children"]}
    assert share["CPU Exec"] > 50
    assert {"title": "Device Type", "value": "CPU"} in overview["environments"]


def test_the_operators_view_shows_shares_and_where_a_stage_was_called(plugin: Any) -> None:
    """The pie holds the stages, and the stack of one leads to the file that spells it."""
    run = name_of("stepwise")
    pie = asked(plugin, "/operation", run, group_by="OperationAndInputShape")
    assert any("aten::bmm" in name for name, _ in pie["host_self_time"]["rows"])
    (stack,) = asked(plugin, "/operation/stack", run, op_name="scale")["data"]
    assert "impls/whole/stepwise.py" in stack["call_stack"]


def test_the_memory_view_shows_who_allocated_what(plugin: Any) -> None:
    """The scores of every call are as large as H·N² floats, as a table, a curve and a list of blocks."""
    scores_kib = 3 * 577 * 577 * 4 / 1024
    table = {row[0]: row for row in asked(plugin, "/memory", name_of("stepwise"))["rows"]["CPU"]}
    assert table["softmax"][6] == pytest.approx(CALLS * scores_kib, abs=0.01)
    assert len(asked(plugin, "/memory_curve", name_of("eager"))["rows"]["CPU"]) > CALLS
    blocks = asked(plugin, "/memory_events", name_of("eager"))["rows"]["CPU"]
    assert any(size == pytest.approx(scores_kib, abs=0.01) for _, size, *_ in blocks)


def test_the_module_and_the_trace_view_show_the_plugins_copy(plugin: Any) -> None:
    """The layer was called once a call, its two projections within it.

    What the viewer of traces is sent holds steps and stages, and the tree of operators the same.
    """
    (layer,) = asked(plugin, "/module", name_of("eager"))["data"]
    assert (layer["name"], layer["occurences"]) == ("ViTAttention_0", CALLS)
    assert [part["occurences"] for part in layer["children"]] == [CALLS, CALLS]
    names = {event["name"] for event in asked(plugin, "/trace", name_of("stepwise"))["traceEvents"]}
    assert names >= STAGES | {"ProfilerStep#0", "ProfilerStep#2"}
    assert "ProfilerStep#2" in str(asked(plugin, "/tree", name_of("stepwise")))


def test_the_kernel_view_shows_a_trace_of_a_gpu(plugin: Any) -> None:
    """Kernels stand beside the operators that launched them, by the runtime or by the driver."""
    assert len(asked(plugin, "/kernel", GPU)["total"]["rows"]) == 3
    rows = asked(plugin, "/kernel/table", GPU, group_by="KernelNameAndOpName")["data"]["rows"]
    assert {(row[0], row[1]) for row in rows} == {
        (f"{name} kernel", name) for name in ("aten::softmax", "triton_poi_fused", "aten::mm")
    }
    assert asked(plugin, "/kernel/tc_pie", GPU)["total"]["rows"][1] == ["Not Using Tensor Cores", 1.0]
    assert "GPU 0 Utilization" in {event["name"] for event in asked(plugin, "/trace", GPU)["traceEvents"]}


def test_stages_of_a_gpu_have_the_time_of_their_kernels() -> None:
    """A stage is an operator on the host; its second appearance on the GPU is no operator of its own."""
    from torch_tb_profiler.profiler.data import RunProfileData
    from torch_tb_profiler.profiler.run_generator import RunGenerator

    data = RunProfileData.from_json("mine", "1", trace_files.for_plugin(gpu_trace.TRACE, "mine call"))
    table = RunGenerator("mine", "1", data).generate_run_profile().operation_table_by_name
    rows = {row["name"]: row for row in table["data"]}
    assert (rows["softmax"]["calls"], rows["softmax"]["device_total_duration"]) == (1, 30)
    assert rows["softmax"]["host_total_duration"] == 30


def test_the_plugins_trace_is_another_one_with_numbered_calls() -> None:
    """Numbers follow time, whatever the order in the file; the label of a call on the GPU has none.

    Nothing else is changed but the categories that the plugin doesn't know, and the trace that is given not at all.
    """
    before = json.dumps(gpu_trace.TRACE)
    rewritten = trace_files.for_plugin(gpu_trace.TRACE, "mine call")
    assert json.dumps(gpu_trace.TRACE) == before
    assert set(rewritten) == set(gpu_trace.TRACE)
    events = rewritten["traceEvents"]
    assert len(events) == len(gpu_trace.TRACE["traceEvents"])
    steps = {event["name"]: event["ts"] for event in events if event["name"].startswith("ProfilerStep#")}
    assert steps == {"ProfilerStep#0": 100.0, "ProfilerStep#1": 200.0}
    same = ("cpu_op", "kernel", "gpu_memcpy", "gpu_user_annotation", "python_function")
    others = [gpu_trace.label("softmax", 0.0, 1.0, category) for category in same]
    others.append({"ph": "M", "name": "process_name"})
    assert trace_files.for_plugin({"traceEvents": others}, "mine call")["traceEvents"] == others


def test_a_kernel_of_ones_own_is_a_file_that_every_system_can_hold(tmp_path: Path) -> None:
    """A colon in an implementation's name is none in its file's or its folder's."""
    path = recorded("impls.whole.stepwise:adapt", tmp_path)
    assert ":" not in str(path.relative_to(tmp_path))
