"""A case in its process: prepared, sampled and finished, with its outputs in files for the judge.

The tests run in this process with a stand-in for the pipe.
"""

import gc
import math
import os
import random
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import msgspec
import pytest
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend

import impls
from bench.measure import cuda
from bench.measure.devices import Gpu
from bench.measure.measured_case import LATE_S, run_on
from bench.sampling.inputs import NORMAL, PEAKED, TIMED
from impls.attend import sdpa
from tests.make.adapters import Own, each_call
from tests.make.points import WITH_CONTEXT, point
from tests.measure.stub import SHIFTS, case

STAGES = [
    *("preparation", "import", "preparation", "first call", "correctness check", "inspection", "warm-up"),
    "last calls",
]
"""The stages that a case announces in order, so that the parent knows the stage if the process dies."""


@pytest.fixture(
    scope="module",
    params=[
        ("eager", "inference", "float32", "vit"),
        ("sdpa", "forward", "bfloat16", "vit"),
        ("eager", "train", "float32", "vit"),
        ("sdpa", "train", "bfloat16", "tests.own_layers:Crossed"),
        ("sdpa", "backward", "float32", "tests.own_layers:Crossed"),
        ("sdpa", "train", "float32", "tests.own_layers:Frozen"),
    ],
    ids=" ".join,
)
def whole(request: pytest.FixtureRequest) -> SimpleNamespace:
    """Return the messages of a case in each mode from its preparation to its end.

    `reasons` are the judge's after the one and the other; `conditions` say whether inference mode and garbage
    collection are on between two samples.
    """
    implementation, mode, dtype, layer = request.param
    context = {} if layer == "vit" else WITH_CONTEXT | {"layer": layer}
    random.seed(1)
    state = random.getstate()
    with case(point(mode=mode, dtype=dtype, **context), implementation, thorough=True) as process:
        seen = SimpleNamespace(mode=mode, prepared=process.prepare(), reasons=[process.reasons()])
        seen.samples = [process.sample() for _ in range(3)]
        seen.conditions = torch.is_inference_mode_enabled(), gc.isenabled()
        seen.finished = process.finish()
        seen.is_random_state_kept = random.getstate() == state
        seen.reasons.append(process.reasons())
        seen.stages = process.channel.stages
    return seen


def test_all_outputs_that_are_kept_are_right(whole: SimpleNamespace) -> None:
    """Outputs of the first calls come before the rounds, of a timed call and the last call after them."""
    replies = [whole.prepared, *whole.samples, whole.finished]
    assert [reply["status"] for reply in replies] == ["ok"] * 5
    assert whole.prepared["detail"] == ""
    assert whole.reasons == [{NORMAL: "", PEAKED: ""}, dict.fromkeys([*SHIFTS, TIMED], "")]
    assert whole.stages[: len(STAGES)] == STAGES


@pytest.mark.parametrize(
    ("layer", "mode", "dtype", "is_right"),
    [
        ("Separate", "train", "bfloat16", True),
        ("Skewed", "inference", "float32", False),
        ("Skewed", "train", "float32", False),
    ],
)
def test_a_layer_with_the_weights_of_another_is_judged_by_it(layer: str, mode: str, dtype: str, is_right: bool) -> None:
    """Outputs and gradients are judged, including those of timed calls."""
    first, second = (point(layer=f"tests.own_layers:{name}", mode=mode, dtype=dtype) for name in ("Separate", layer))
    with case(second, "as_is", thorough=True, first=first) as process:
        assert process.measure(2)["status"] == "ok"
        reasons = process.reasons()
    assert {*reasons} == {*SHIFTS, TIMED}
    assert {name: not reason for name, reason in reasons.items()} == dict.fromkeys(reasons, is_right)


def test_a_prepared_case_gives_sample_after_sample(whole: SimpleNamespace) -> None:
    """Each has as many timings, and the processor's seconds in them.

    Between two samples the point's gradient mode holds, and no garbage is collected; the order's randomness isn't
    Python's global state.
    """
    assert [len(reply["timings_s"]) for reply in whole.samples] == [3] * 3
    assert min(value for reply in whole.samples for value in reply["timings_s"]) > 0
    assert all(reply["used_s"] > 0 for reply in whole.samples)
    assert whole.conditions == (whole.mode == "inference", False)
    assert whole.is_random_state_kept


def test_a_prepared_case_says_its_pace_its_kernels_and_its_memory(whole: SimpleNamespace) -> None:
    """Outside inference the bytes that autograd keeps are among them; a CPU has no free memory of its own."""
    metrics = whole.prepared["metrics"]
    assert metrics["settled"] in (True, False)
    assert min(metrics["calls_per_timing"], metrics["peak_bytes"], len(metrics["kernels"])) > 0
    assert ("saved_bytes" in metrics) is (whole.mode != "inference")
    assert metrics.get("saved_bytes", 1) > 0


@each_call
def remembers(own: Own, x: Tensor) -> Tensor:
    """Answers from memory where it has seen the values of an input."""
    key = tuple(x.flatten()[:8].tolist())
    if key not in own.kept:
        own.kept[key] = own(x)
    y: Tensor = own.kept[key].clone()
    return y


@each_call
def works_in_a_thread(own: Own, x: Tensor) -> Tensor:
    """Computes in a thread, waits for it, and works after it."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(torch.inference_mode()(own), x).result().mul(1)


@pytest.mark.parametrize("name", ["remembers", "works_in_a_thread"])
def test_memory_and_kernels_are_those_of_an_input_that_no_call_had(name: str) -> None:
    """An answer that is remembered needs a copy alone. The memory of work in another thread is unknown."""
    at = point()
    with case(at, f"{__name__}:{name}", thorough=True) as process:
        metrics = process.prepare()["metrics"]
    assert "_softmax" in metrics["kernels"]
    assert ("peak_bytes" in metrics) is (name == "remembers")
    assert metrics.get("peak_bytes", math.inf) > 2 * at.batch * at.num_tokens * at.channels * 4


def test_a_later_measurement_checks_the_harder_input_alone_and_inspects_nothing() -> None:
    """Kernels and memory are known from the first one."""
    with case(point(), "sdpa") as process:
        metrics = process.prepare()["metrics"]
        assert process.reasons() == {PEAKED: ""}
    assert not {"kernels", "peak_bytes"} & set(metrics)


def test_one_that_names_a_kernel_and_runs_another_is_a_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fallback's answers are right and its time would be another kernel's: the row says what ran."""
    monkeypatch.setattr(sdpa, "adapt_flash", impls.with_attend(sdpa.pinned(SDPBackend.MATH)))
    with case(point(), "sdpa_flash", thorough=True) as process:
        reply = process.prepare()
    assert reply["status"] == "fallback"
    assert "sdpa_flash must run scaled_dot_product_flash_attention" in reply["detail"]
    assert "_scaled_dot_product_attention_math ran" in reply["detail"]


@pytest.mark.filterwarnings("error")
def test_what_a_backend_refuses_is_unsupported_with_torchs_reason() -> None:
    """So it is in an own implementation that says nothing of it; torch's warnings are shown nowhere else."""
    with case(point(), "tests.foreign:refused") as process:
        reply = process.prepare()
    assert reply["status"] == "unsupported"
    assert reply["detail"].startswith("No available kernel")
    assert reply["detail"].count("do not support non-zero dropout") == 1


@pytest.mark.parametrize("late", ["", "in a look", "in timings"])
def test_work_of_a_gpu_on_another_stream_is_incorrect(late: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The device goes on for a tenth of the time of calls after their stream is done."""
    with case(point(), "eager") as process:
        process.prepare()
        call_s = min(process.sample()["timings_s"])
        measured = process.worker._case
        assert measured is not None

        def too_late_s(calls: int) -> float:
            return LATE_S + 0.1 * calls * float(call_s)

        def looked_at(_call: object, calls: int, in_timings_s: float) -> float:
            return too_late_s(calls) if late == "in a look" else in_timings_s

        on_gpu = msgspec.structs.replace(measured.request, point=point(device="cuda", dtype="float16"))
        late_s = too_late_s(cuda.MOST_CALLS) if late == "in timings" else 5e-5
        monkeypatch.setattr(measured, "request", on_gpu)
        monkeypatch.setattr(measured, "_timer", SimpleNamespace(late_s=late_s, most_calls=math.inf))
        monkeypatch.setattr(cuda, "late_s", looked_at)
        monkeypatch.setattr(Gpu, "energy_j", lambda _gpu: None)
        reply = process.finish()
    assert reply["status"] == ("incorrect" if late else "ok")
    assert ("works on another stream" in reply["detail"]) is bool(late)


LATER = {
    "hacks:lazy": "output is a _Lazy, expected a plain torch.Tensor",
    "mutants:denormal_input_later": "edited its input in place (in a timed call)",
    "hacks:no_gradients_later": "weight (in a timed call) is off by",
    "mutants:weights_later": "edited the layer's weights (in a timed call)",
    "mutants:a_view_of_its_input_later": "output shares memory with its input or with a weight (in a timed call)",
}
"""The details of faults that are right at first."""


@pytest.mark.parametrize(
    ("mode", "name"),
    [
        *(("inference", name) for name in LATER if name != "hacks:no_gradients_later"),
        *(("train", f"hacks:{name}") for name in ("lazy", "no_gradients_later")),
        ("train", "mutants:denormal_input_later"),
    ],
)
def test_what_was_right_in_the_check_and_is_wrong_when_it_is_timed_is_incorrect(mode: str, name: str) -> None:
    """Outputs of timed calls and of a call on fresh values are judged, inputs and weights compared after the rounds."""
    with case(point(mode=mode), f"tests.{name}") as process:
        reply = process.prepare()
        if reply["status"] == "ok":
            assert set(process.reasons().values()) == {""}
            reply = process.rounds(5)
        details = [reply["detail"], *process.reasons().values()]
    assert any(LATER[name] in detail for detail in details), details
    assert reply["status"] in ("ok", "incorrect")


def test_one_that_fails_in_a_sample_has_ended() -> None:
    """The reply says how."""
    with case(point(), "tests.foreign:raises_later") as process:
        reply = process.measure(1)
    assert reply["status"] == "error"
    assert reply["detail"].startswith("RuntimeError: tired (foreign.py, line ")


@pytest.mark.parametrize(
    ("name", "mode", "status", "detail"),
    [
        ("foreign:nothing", "inference", "error", "can't be imported"),
        ("foreign:raises", "inference", "error", "RuntimeError: this kernel is not for today"),
        ("foreign:hungry", "inference", "oom", "can't allocate memory"),
        ("foreign:unsupported", "inference", "unsupported", "not this layer"),
        *((f"own_runtime:{name}", "train", "unsupported", "for inference") for name in ("NumPy", "Halved", "Broken")),
    ],
)
def test_a_fault_is_an_outcome(name: str, mode: str, status: str, detail: str) -> None:
    """An implementation's exception has a status and a reason, and no output is left for the judge.

    Another runtime has no gradients, and says so before it is built.
    """
    with case(point(mode=mode), f"tests.{name}") as process:
        reply = process.prepare()
    assert reply["status"] == status
    assert detail in reply["detail"]
    assert process.reasons() == {}


@pytest.fixture
def two_cores() -> Iterator[tuple[int, int]]:
    """Return two cores of this process, which gets all of its own back."""
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
    if len(cores) < 2:
        pytest.skip("there are no two cores to choose from")
    try:
        yield min(cores), max(cores)
    finally:
        os.sched_setaffinity(0, cores)


def test_a_case_goes_to_the_core_that_it_is_asked_on(two_cores: tuple[int, int]) -> None:
    """The case was prepared on one, takes its samples on another and its last calls on the first.

    None of this is a fault.
    """
    one, other = two_cores
    with case(point(), "eager") as process:
        process.request = msgspec.structs.replace(process.request, core=one)
        process.prepare()
        assert os.sched_getaffinity(0) == {one}
        assert [process.sample(other)["status"] for _ in range(2)] == ["ok"] * 2
        assert os.sched_getaffinity(0) == {other}
        assert process.sample()["status"] == "ok"
        assert os.sched_getaffinity(0) == {other}
        assert process.finish(one)["status"] == "ok"
        assert os.sched_getaffinity(0) == {one}


@pytest.mark.parametrize("asked", ["sample", "finish"])
def test_one_that_chose_cores_itself_is_caught_by_the_move(asked: str, two_cores: tuple[int, int]) -> None:
    """The move to another core hides no change that was made since the last sample."""
    one, other = two_cores
    with case(point(), "eager") as process:
        process.request = msgspec.structs.replace(process.request, core=one)
        process.prepare()
        process.sample(one)
        os.sched_setaffinity(0, two_cores)
        reply = getattr(process, asked)(other)
    assert reply["status"] == "error"
    assert f"the cores to run on changed: {set(two_cores)} instead of {set(two_cores[:1])}" in reply["detail"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets threads choose cores")
def test_all_threads_run_on_the_core_alone() -> None:
    """Else a thread that a row has started before would be a second core for it."""
    before, done = os.sched_getaffinity(0), threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        run_on(min(before))
        assert os.sched_getaffinity(thread.native_id or 0) == os.sched_getaffinity(0) == {min(before)}
    finally:
        done.set()
        thread.join()
        os.sched_setaffinity(0, before)
