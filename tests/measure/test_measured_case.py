"""A case in its process: prepared, sampled and finished, with its outputs in files for the judge.

Most tests run in this process with a stand-in for the pipe. What changes the state of a process runs in a real worker.
"""

import dataclasses
import gc
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch.nn.attention import SDPBackend

import impls
from bench.engine.worker import ALLOCATOR_VARIABLES
from bench.measure import clock, energy, gpu_state, measured_case
from bench.measure.gpu_state import GpuState
from bench.measure.measured_case import LATE_S, load
from bench.plan.case import HUGE
from bench.sampling.inputs import AFTERWARDS, NORMAL, PEAKED, TIMED
from bench.sampling.rounds import LEAST_ROUNDS, Sample
from impls.attend import sdpa
from tests import meddlers, mutants
from tests.children import in_child
from tests.measure.conftest import Measured, without_huge_pages
from tests.measure.stub import SHIFTS, case
from tests.points import OF_LAYER, of_layer, point


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("mode", ["inference", "forward", "train"])
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_all_outputs_that_are_kept_are_right(implementation: str, mode: str, dtype: str, tmp_path: Path) -> None:
    """Those of the first calls come before the rounds, those of a timed call and of the last one after them."""
    with case(point(mode=mode, dtype=dtype), implementation, tmp_path) as made:
        reply = made.prepare()
        assert (reply["status"], reply["detail"]) == ("ok", "")
        assert made.reasons() == {NORMAL: "", PEAKED: ""}
        assert [made.sample()["status"] for _ in range(3)] == ["ok"] * 3
        assert made.finish()["status"] == "ok"
        assert made.reasons() == dict.fromkeys([*SHIFTS, TIMED], "")


def test_a_prepared_case_gives_sample_after_sample(tmp_path: Path) -> None:
    """Each has as many timings; the processor's seconds grow from one to the next."""
    with case(point(), "eager", tmp_path) as made:
        prepared = made.prepare()
        assert prepared["metrics"]["settled"] in (True, False)
        assert prepared["metrics"]["calls_per_timing"] >= 1
        assert prepared["free_bytes"] is None
        replies = [made.sample() for _ in range(3)]
        samples = [Sample(**reply["sample"]) for reply in replies]
        assert [len(sample.timings_s) for sample in samples] == [3] * 3
        assert min(value for sample in samples for value in sample.timings_s) > 0
        assert all(reply["used_s"] > 0 and reply["idle_s"] >= 0 for reply in replies)
        assert replies[0]["cpu_s"] < replies[1]["cpu_s"] < replies[2]["cpu_s"]
        assert made.finish()["cpu_s"] > replies[2]["cpu_s"]


def test_the_last_calls_are_no_work_between_samples(tmp_path: Path) -> None:
    """A case that is timed again after them worked because it was asked to."""
    with case(point(), "eager", tmp_path) as made:
        made.prepare()
        before_s = made.sample()["cpu_s"]
        worked_s = made.finish()["cpu_s"] - before_s
        assert made.sample()["idle_s"] < worked_s / 2


def test_what_a_case_does_is_announced(tmp_path: Path) -> None:
    """The parent knows the stage if the process dies."""
    with case(point(), "eager", tmp_path) as made:
        made.prepare()
        made.finish()
        stages = [
            "preparation",
            "import",
            "preparation",
            "first call",
            "correctness check",
            "inspection",
            "warm-up",
            "last calls",
        ]
        assert made.channel.stages[: len(stages)] == stages


@pytest.mark.parametrize(("mode", "inference"), [("inference", True), ("forward", False), ("train", False)])
def test_samples_are_taken_in_the_points_mode_and_without_garbage_collection(
    mode: str, inference: bool, tmp_path: Path
) -> None:
    """Both hold between one sample and the next."""
    with case(point(mode=mode), "eager", tmp_path) as made:
        made.prepare()
        made.sample()
        assert (torch.is_inference_mode_enabled(), gc.isenabled()) == (inference, False)


def test_kernels_and_memory_are_inspected_once_for_a_case(tmp_path: Path) -> None:
    """The first measurement of a case has them and checks two inputs, a later one checks the harder input alone."""
    with case(point(), "sdpa", tmp_path) as first:
        metrics = first.prepare()["metrics"]
    assert "_scaled_dot_product_flash_attention_for_cpu" in metrics["kernels"]
    assert metrics["peak_bytes"] > 0
    assert "saved_bytes" not in metrics
    (tmp_path / "later").mkdir()
    with case(point(), "sdpa", tmp_path / "later", thorough=False) as later:
        metrics = later.prepare()["metrics"]
        assert later.reasons() == {PEAKED: ""}
    assert not {"kernels", "peak_bytes"} & set(metrics)


@pytest.mark.parametrize("mode", ["forward", "train"])
def test_modes_with_gradients_say_what_autograd_keeps(mode: str, tmp_path: Path) -> None:
    """Outside inference the bytes saved for backward are found too."""
    with case(point(mode=mode), "eager", tmp_path) as made:
        assert made.prepare()["metrics"]["saved_bytes"] > 0


def test_one_that_names_a_kernel_and_runs_another_is_a_fallback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its answers are right and its time would be another kernel's: the row says what ran."""
    monkeypatch.setattr(sdpa, "adapt_flash", impls.with_attend(sdpa.pinned(SDPBackend.MATH)))
    with case(point(), "sdpa_flash", tmp_path) as made:
        reply = made.prepare()
    assert reply["status"] == "fallback"
    assert "sdpa_flash must run scaled_dot_product_flash_attention" in reply["detail"]
    assert "_scaled_dot_product_attention_math ran" in reply["detail"]


def test_a_gpus_state_is_read_right_after_calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The last thing before it is a call, because the clock of an idle GPU says nothing."""
    with case(point(), "eager", tmp_path) as made:
        made.prepare()
        made.sample()
        measured = made.worker._case
        assert measured is not None
        on_gpu = dataclasses.replace(measured.request, point=point(device="cuda", dtype="float16"))
        call, events = measured._call, list[str]()

        def recorded() -> object:
            events.append("call")
            return call()

        def read(_device: str) -> GpuState:
            events.append("read")
            return GpuState(1.98e9, ("software power cap",))

        monkeypatch.setattr(measured, "request", on_gpu)
        monkeypatch.setattr(measured, "_call", recorded)
        monkeypatch.setattr(energy, "counter", lambda _device: None)
        monkeypatch.setattr(gpu_state, "read", read)
        monkeypatch.setattr(clock, "late_s", lambda _call: 5e-6)
        metrics = made.finish()["metrics"]
    assert events[: events.index("read")][-1:] == ["call"]
    assert (metrics["clock_hz"], metrics["throttle"]) == (1.98e9, ("software power cap",))


def test_work_on_another_stream_is_incorrect(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If the device goes on for as long as the call takes, after the call's stream is done."""
    with case(point(), "eager", tmp_path) as made:
        made.prepare()
        call_s = min(made.sample()["sample"]["timings_s"])
        measured = made.worker._case
        assert measured is not None
        on_gpu = dataclasses.replace(measured.request, point=point(device="cuda", dtype="float16"))
        monkeypatch.setattr(measured, "request", on_gpu)
        monkeypatch.setattr(energy, "counter", lambda _device: None)
        monkeypatch.setattr(gpu_state, "read", lambda _device: GpuState())
        monkeypatch.setattr(clock, "late_s", lambda _call: LATE_S + call_s)
        reply = made.finish()
    assert reply["status"] == "incorrect"
    assert "works on another stream" in reply["detail"]


def test_parts_of_many_timed_calls_are_kept(tmp_path: Path) -> None:
    """As many as are judged, and their outputs are right."""
    with case(point(), "eager", tmp_path, thorough=False) as made:
        made.prepare()
        assert {made.sample()["status"] for _ in range(100)} == {"ok"}
        made.finish()
        assert len({part.key for part in made.judged.parts}) > made.judged.most / 2
        assert len(made.judged.parts) == made.judged.most
        assert made.reasons() == {PEAKED: "", TIMED: "", AFTERWARDS: ""}


def test_the_work_of_child_processes_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What they do during the timings is work of the sample, and what they do meanwhile is work between samples."""
    with case(point(), "eager", tmp_path, order_seed=2) as made:
        so_far_s = measured_case.children_s()
        made.prepare()
        made.begin()
        used_s = iter([100.0, 107.0, 120.0])  # before and after the first sample, before the second one
        monkeypatch.setattr(measured_case, "children_s", lambda: so_far_s + next(used_s, 120.0))
        first, second = made.sample(), made.sample()
    assert first["idle_s"] >= 100
    assert 7 <= first["used_s"] < 8
    assert 13 <= second["idle_s"] < 14
    assert second["used_s"] < 1


@pytest.mark.parametrize("name", ["honest_after_a_pause", "honest_for_other_versions"])
def test_no_call_of_a_timing_can_tell_that_it_is_judged(name: str, tmp_path: Path) -> None:
    """Neither a pause before it nor its input shows that; each timing has many calls here."""
    with case(point(batch=8), f"tests.hacks:{name}", tmp_path) as made:
        assert made.prepare()["status"] == "ok"
        assert {made.sample()["status"] for _ in range(5)} == {"ok"}
        made.finish()
        assert "is off by" in made.reasons()[TIMED]


def test_one_buffer_for_all_outputs_is_judged_call_by_call(tmp_path: Path) -> None:
    """Each timing has two parts then, and what the first one leaves is right."""
    with case(point(batch=8), "tests.hacks:returns_one_buffer", tmp_path) as made:
        assert made.prepare()["reuses"]
        assert {made.sample()["status"] for _ in range(20)} == {"ok"}
        made.finish()
        assert set(made.reasons().values()) == {""}


def test_a_buffer_that_the_warm_up_did_not_show_is_judged_too(tmp_path: Path) -> None:
    """A timing of the warm-up may be one call: then the first sample shows that all calls return the same memory."""
    with case(point(batch=8), "tests.hacks:returns_one_buffer", tmp_path, thorough=False) as made:
        made.prepare()
        measured = made.worker._case
        assert measured is not None
        measured.reuses = False
        assert {made.sample()["status"] for _ in range(20)} == {"ok"}
        assert measured.reuses
        made.finish()
        assert set(made.reasons().values()) == {""}


def test_one_that_works_for_new_values_alone_is_incorrect(tmp_path: Path) -> None:
    """Its outputs are right, and repeated values within a timing cost it nothing."""
    with case(point(), "tests.hacks:memo_by_version", tmp_path) as made:
        assert made.prepare()["status"] == "ok"
        assert {made.sample()["status"] for _ in range(5)} == {"ok"}
        reply = made.finish()
    assert reply["status"] == "incorrect"
    assert "keeps its results" in reply["detail"]


@pytest.mark.parametrize(
    ("mode", "name"),
    [*(("inference", name) for name in mutants.LATER), *(("train", name) for name in mutants.LATER_TOO)],
)
def test_what_was_right_in_the_check_and_is_wrong_when_it_is_timed_is_incorrect(
    mode: str, name: str, tmp_path: Path
) -> None:
    """Outputs of timed calls and of a call on fresh values are judged, inputs and weights compared after the rounds."""
    with case(point(mode=mode), f"tests.mutants:{name}", tmp_path) as made:
        reply = made.prepare()
        if reply["status"] == "ok":
            assert set(made.reasons().values()) == {""}
            replies = [made.sample() for _ in range(5)]
            failed = [reply for reply in replies if reply["status"] != "ok"]
            reply = failed[0] if failed else made.finish()
        details = [reply["detail"], *made.reasons().values()]
    assert any(mutants.LATER[name] in detail for detail in details), details
    assert reply["status"] in ("ok", "incorrect")


def test_one_that_fails_in_a_sample_has_ended(tmp_path: Path) -> None:
    """The reply says how."""
    with case(point(), "tests.foreign:raises_later", tmp_path) as made:
        assert made.prepare()["status"] == "ok"
        reply = made.sample()
        assert (reply["status"], reply["detail"]) == ("error", "RuntimeError: tired")


@pytest.mark.parametrize(
    ("name", "status", "detail"),
    [
        ("nothing", "error", "can't be imported"),
        ("raises", "error", "RuntimeError: this kernel is not for today"),
        ("hungry", "oom", "can't allocate memory"),
        ("unsupported", "unsupported", "not this layer"),
    ],
)
def test_a_fault_is_an_outcome(name: str, status: str, detail: str, tmp_path: Path) -> None:
    """What an implementation raises has a status and a reason, and no output is left for the judge."""
    with case(point(), f"tests.foreign:{name}", tmp_path) as made:
        reply = made.prepare()
    assert reply["status"] == status
    assert detail in reply["detail"]
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("name", ["NumPy", "Halved", "Broken"])
def test_another_runtime_does_not_train(name: str, tmp_path: Path) -> None:
    """It has no gradients, and says so before it is built."""
    with case(point(mode="train"), f"tests.own_runtime:{name}", tmp_path) as made:
        reply = made.prepare()
    assert (reply["status"], "is used for inference alone" in reply["detail"]) == ("unsupported", True)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="cores can't be chosen here")
def test_calls_are_made_on_the_core_that_is_given(tmp_path: Path) -> None:
    """From the preparation on."""
    cores = os.sched_getaffinity(0)
    with case(point(), "eager", tmp_path) as made:
        made.request["core"] = max(cores)
        try:
            made.prepare()
            assert os.sched_getaffinity(0) == {max(cores)}
        finally:
            os.sched_setaffinity(0, cores)


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


def test_a_case_goes_to_the_core_that_it_is_asked_on(two_cores: tuple[int, int], tmp_path: Path) -> None:
    """It was prepared on one, takes its samples on another and its last calls on the first; none of this is a fault."""
    one, other = two_cores
    with case(point(), "eager", tmp_path) as made:
        made.request["core"] = one
        made.prepare()
        assert [made.sample(other)["status"] for _ in range(2)] == ["ok"] * 2
        assert os.sched_getaffinity(0) == {other}
        assert made.sample()["status"] == "ok"
        assert os.sched_getaffinity(0) == {other}
        assert made.finish(one)["status"] == "ok"
        assert os.sched_getaffinity(0) == {one}


@pytest.mark.parametrize("asked", ["sample", "finish"])
def test_one_that_chose_cores_itself_is_caught_by_the_move(
    asked: str, two_cores: tuple[int, int], tmp_path: Path
) -> None:
    """The move to another core hides no change that was made since the last sample."""
    one, other = two_cores
    with case(point(), "eager", tmp_path) as made:
        made.request["core"] = one
        made.prepare()
        made.sample(one)
        os.sched_setaffinity(0, two_cores)
        reply = getattr(made, asked)(other)
    assert reply["status"] == "error"
    assert f"the cores to run on changed: {set(two_cores)} instead of {set(two_cores[:1])}" in reply["detail"]


def test_random_numbers_of_others_stay(tmp_path: Path) -> None:
    """The order's randomness comes from the request, not from Python's global state."""
    random.seed(1)
    before = random.getstate()
    with case(point(), "eager", tmp_path) as made:
        made.prepare()
        made.sample()
    assert random.getstate() == before


@pytest.mark.slow
class TestInProcesses:
    """Cases in processes of their own, as the engine measures them."""

    def test_what_works_ends_ok_with_samples_memory_and_error(self, measured: Measured) -> None:
        """An ok member holds everything that a record needs."""
        member = measured("eager", "sdpa")["sdpa"]
        assert (member.status, member.detail) == ("ok", "")
        assert len(member.samples.rounds) >= LEAST_ROUNDS
        assert member.metrics["peak_bytes"] > 0
        assert 0 <= member.metrics["error"] <= member.metrics["tolerance"]
        assert member.metrics["flops"] > member.metrics["least_bytes"] > 0

    @pytest.mark.parametrize("layer", OF_LAYER)
    def test_a_causal_point(self, layer: str, measured: Measured) -> None:
        """A core with the mask is ok, one that declares and ignores it incorrect, one without it unsupported."""
        ignores, knows_none = "tests.mutants:ignores_the_mask", "tests.foreign:twin"
        members = measured("eager", "sdpa", ignores, knows_none, at=of_layer(layer, mask="causal"))
        statuses = {name: member.status for name, member in members.items()}
        assert statuses == {"eager": "ok", "sdpa": "ok", ignores: "incorrect", knows_none: "unsupported"}
        assert "does not declare the keyword mask" in members[knows_none].detail

    @pytest.mark.parametrize(
        ("layer", "expected"),
        [
            ("Mine", {"eager": "ok", "sdpa": "ok", "stepwise": "unsupported", "mha": "unsupported"}),
            ("Whole", {"eager": "ok", "sdpa": "unsupported", "stepwise": "unsupported", "mha": "unsupported"}),
        ],
    )
    def test_a_layer_of_the_users_own(self, layer: str, expected: dict[str, str], measured: Measured) -> None:
        """Its core is replaced if it has one; as it is, it is the baseline; kernels of our layers are unsupported."""
        mutant = "tests.mutants:mean_of_values"
        members = measured(*expected, mutant, layer=f"tests.own_layers:{layer}")
        of_mutant = "incorrect" if layer == "Mine" else "unsupported"
        assert {name: member.status for name, member in members.items()} == {**expected, mutant: of_mutant}
        if layer == "Whole":
            assert members["sdpa"].detail == "Whole has no attend to replace"

    def test_whoever_leaves_the_state_of_the_process_changed_is_an_error_and_harms_nobody(
        self, measured: Measured
    ) -> None:
        """Each change is seen after the step in which it was made, and said in words."""
        members = measured("eager", "sdpa", *(f"tests.meddlers:{name}" for name in meddlers.SAYS))
        for name, words in meddlers.SAYS.items():
            member = members[f"tests.meddlers:{name}"]
            assert (member.status, words in member.detail) == ("error", True), (name, member.status, member.detail)
            assert member.samples.rounds == ()
        assert (members["eager"].status, members["sdpa"].status) == ("ok", "ok")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only glibc can be told to retain memory")
@pytest.mark.parametrize("allocator", ["retained", pytest.param(HUGE, marks=without_huge_pages)])
def test_memory_that_was_touched_faults_no_more(allocator: str) -> None:
    """A block as large as the one that was touched and freed finds its pages, if the allocator retains memory."""
    code = (
        "import resource, torch\n"
        "from bench.measure.measured_case import touch\n"
        "faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "touch(1 << 27)\n"
        "before = faults()\n"
        "torch.empty(1 << 26, dtype=torch.uint8).fill_(1)\n"
        "print(faults() - before)\n"
    )
    variables = {**os.environ, **ALLOCATOR_VARIABLES[allocator]}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100


def test_a_module_that_changes_the_state_when_it_is_imported_is_blamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New environment variables it may set."""
    source = "import os, torch\nos.environ['SOME_LIBRARY'] = '1'\n{}\ndef adapt(layer):\n    return layer\n"
    (tmp_path / "good_citizen.py").write_text(source.format(""))
    (tmp_path / "bad_citizen.py").write_text(source.format("torch.set_default_dtype(torch.float64)"))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("SOME_LIBRARY", raising=False)

    def checked(module: str) -> str:
        load(f"{module}:adapt")
        return "nothing is said"

    assert in_child(lambda: checked("good_citizen")) == "nothing is said"
    said = in_child(lambda: checked("bad_citizen"))
    assert re.search(r"LeftChanged: .*default dtype changed: torch.float64 .* \(when it was imported\)", said)
