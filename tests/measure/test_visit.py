"""A visit: every implementation of a point ends with an outcome, whatever it does."""

import random
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend

import impls
from bench.measure import correctness, failure, visit
from bench.measure.process_state import State
from bench.sampling.rounds import LEAST_ROUNDS, StoppingRule
from impls.attend import sdpa
from tests import meddlers, mutants
from tests.points import OF_LAYER, of_layer, point

pytestmark = pytest.mark.slow

SHORT = StoppingRule(target=0.5, budget_s=0.05, processes=3)
LONG = StoppingRule(target=1e-9, budget_s=1.0, processes=3)


def visited(*implementations: str, limits: StoppingRule = SHORT, **columns: Any) -> visit.Visit:
    """Return a visit of a tiny point."""
    request = visit.Request(point(**columns), implementations, "eager", limits, seed=7, thorough=True)
    return visit.make(request, lambda *_: None)


def statuses(made: visit.Visit) -> dict[str, str]:
    """Return the status of each implementation."""
    return {name: outcome.status for name, outcome in made.outcomes.items()}


def test_what_works_ends_ok_with_slots_memory_and_error() -> None:
    """An ok outcome holds everything that a record needs."""
    outcome = visited("eager", "sdpa").outcomes["sdpa"]
    assert outcome.status == "ok"
    assert len(outcome.metrics["slots"].rounds) >= LEAST_ROUNDS
    assert outcome.metrics["peak_bytes"] > 0
    assert 0 <= outcome.metrics["error"] <= outcome.metrics["tolerance"]
    assert outcome.metrics["calls_per_timing"] >= 1
    assert outcome.metrics["flops"] > outcome.metrics["least_bytes"] > 0
    assert min(outcome.metrics["ceiling_flops_per_s"], outcome.metrics["ceiling_bytes_per_s"]) > 1e6


@pytest.mark.parametrize(
    ("attribute", "status", "detail"),
    [
        ("wrong", "incorrect", "is off by"),
        ("raises", "error", "RuntimeError: this kernel is not for today"),
        ("hungry", "oom", "can't allocate memory"),
        ("unsupported", "unsupported", "not this layer"),
    ],
)
def test_a_fault_is_an_outcome_and_disturbs_nobody(attribute: str, status: str, detail: str) -> None:
    """What goes wrong in one implementation is its own row, and eager is measured beside it."""
    made = visited("eager", f"tests.foreign:{attribute}")
    assert statuses(made) == {"eager": "ok", f"tests.foreign:{attribute}": status}
    assert detail in made.outcomes[f"tests.foreign:{attribute}"].detail
    assert "slots" not in made.outcomes[f"tests.foreign:{attribute}"].metrics


@pytest.mark.parametrize("layer", OF_LAYER)
def test_a_causal_point(layer: str) -> None:
    """What computes the mask is ok, what declares it and ignores it is incorrect, what doesn't know it unsupported."""
    ignores, knows_none = "tests.mutants:ignores_the_mask", "tests.foreign:twin"
    request = visit.Request(
        of_layer(layer, mask="causal"), ("eager", "sdpa", ignores, knows_none), "eager", SHORT, seed=7, thorough=True
    )
    made = visit.make(request, lambda *_: None)
    assert statuses(made) == {"eager": "ok", "sdpa": "ok", ignores: "incorrect", knows_none: "unsupported"}
    assert "does not declare the keyword mask" in made.outcomes[knows_none].detail


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        ("Mine", {"eager": "ok", "sdpa": "ok", "stepwise": "unsupported", "mha": "unsupported"}),
        ("Whole", {"eager": "ok", "sdpa": "unsupported", "stepwise": "unsupported", "mha": "unsupported"}),
    ],
)
def test_a_layer_of_the_users_own(layer: str, expected: dict[str, str]) -> None:
    """Its core is replaced if it has one; as it is, it is the baseline; what knows our layers alone is unsupported."""
    made = visited(*expected, "tests.mutants:mean_of_values", layer=f"tests.own_layers:{layer}")
    mutant = "incorrect" if layer == "Mine" else "unsupported"
    assert statuses(made) == {**expected, "tests.mutants:mean_of_values": mutant}
    assert made.outcomes["eager"].metrics["peak_bytes"] > 0
    if layer == "Whole":
        assert made.outcomes["sdpa"].detail == "Whole has no attend to replace"


@pytest.mark.parametrize(
    ("layer", "columns", "status", "detail"),
    [
        ("tests.own_layers:Wide", {}, "error", "layer 'tests.own_layers:Wide' can't take x [2, 7, 12]"),
        ("no_such_module:Layer", {}, "error", "layer 'no_such_module:Layer' can't be imported"),
        ("tests.own_layers:Whole", {"mask": "causal"}, "unsupported", "layer 'tests.own_layers:Whole' does not take"),
        ("tests.own_layers:MultiThreaded", {}, "error", "torch's threads changed"),
    ],
)
def test_a_users_layer_that_cannot_be_measured_is_a_row(
    layer: str, columns: dict[str, Any], status: str, detail: str
) -> None:
    """Every implementation ends with the layer's reason, and the state of the process is put back."""
    made = visited("eager", "sdpa", layer=layer, **columns)
    assert statuses(made) == {"eager": status, "sdpa": status}
    assert all(detail in outcome.detail for outcome in made.outcomes.values())
    assert torch.get_num_threads() == point().threads


def test_one_that_fails_while_it_is_timed_is_an_error_without_a_time() -> None:
    """An exception in the rounds ends the case, its slots are not kept."""
    made = visited("eager", "tests.foreign:raises_later", limits=LONG)
    assert statuses(made) == {"eager": "ok", "tests.foreign:raises_later": "error"}
    assert made.outcomes["tests.foreign:raises_later"].detail == "RuntimeError: tired"
    assert "slots" not in made.outcomes["tests.foreign:raises_later"].metrics


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_without_a_cuda_device_a_cuda_point_is_unsupported_with_the_reason() -> None:
    """Nothing is measured on another device than the one asked for."""
    made = visited("eager", "sdpa", device="cuda", timing="device-cold")
    assert set(statuses(made).values()) == {"unsupported"}
    assert "no CUDA device" in made.outcomes["sdpa"].detail


def test_device_timing_on_the_cpu_is_unsupported() -> None:
    """The CPU has no events to time with, and does not silently use the wall."""
    made = visited("eager", timing="device-hot")
    assert statuses(made) == {"eager": "unsupported"}
    assert "device-hot needs a CUDA device" in made.outcomes["eager"].detail


@pytest.mark.parametrize("mode", ["forward", "train"])
def test_modes_with_gradients_say_what_autograd_keeps(mode: str) -> None:
    """Outside inference the bytes saved for backward are found too, in inference there are none to find."""
    assert visited("eager", mode=mode).outcomes["eager"].metrics["saved_bytes"] > 0
    assert "saved_bytes" not in visited("eager").outcomes["eager"].metrics


def test_one_that_names_a_kernel_and_runs_another_is_a_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answers are right and its time would be another kernel's: the row says what ran, and holds no time."""
    monkeypatch.setattr(sdpa, "adapt_flash", impls.with_attend(sdpa.pinned(SDPBackend.MATH)))
    outcome = visited("eager", "sdpa_flash").outcomes["sdpa_flash"]
    assert outcome.status == "fallback"
    assert "sdpa_flash must run scaled_dot_product_flash_attention" in outcome.detail
    assert "_scaled_dot_product_attention_math ran" in outcome.detail
    assert "slots" not in outcome.metrics


def test_a_first_visit_tries_both_inputs_and_inspects_and_a_later_one_the_harder_input() -> None:
    """Kernels and memory are looked at once for a point; the correctness check is made in every process."""
    at, names = point(), ("eager", "sdpa", "tests.foreign:wrong")
    later = visit.make(visit.Request(at, names, "eager", SHORT, 7, thorough=False), lambda *_: None)
    assert statuses(later) == {"eager": "ok", "sdpa": "ok", "tests.foreign:wrong": "incorrect"}
    assert "kernels" in visited("sdpa").outcomes["sdpa"].metrics
    assert "kernels" not in later.outcomes["sdpa"].metrics


def test_an_error_that_leaves_a_gpu_unusable_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the device answers no more, nothing else is measured in this process; where it answers, a row ends."""
    calls = []

    def synchronize(device: str) -> None:
        calls.append(device)
        if len(calls) > 1:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    outcome = visit.Outcome()
    with failure.caught(outcome, "cuda"):
        raise ValueError("a shape")
    assert (outcome.status, outcome.detail) == ("error", "ValueError: a shape")
    with pytest.raises(SystemExit, match="RuntimeError: the kernel's own words"), failure.caught(outcome, "cuda"):
        raise RuntimeError("the kernel's own words")


def test_preparation_happens_in_an_order_of_its_own_each_time() -> None:
    """The order of building follows the seed, so that no implementation is always the first."""
    orders = set()
    for seed in range(8):
        names: list[str] = []
        limits = StoppingRule(target=0.5, budget_s=0.0, processes=3)
        request = visit.Request(point(), ("eager", "sdpa", "manual"), "eager", limits, seed, thorough=False)
        visit.make(request, lambda name, stage, names=names: names.append(name) if stage == "preparation" else None)  # type: ignore[misc]
        assert sorted(names) == ["eager", "manual", "sdpa"]
        orders.add(tuple(names))
    assert len(orders) > 1


def test_busy_time_is_no_more_than_the_time_that_passed() -> None:
    """The time in calls is positive and within the visit."""
    made = visited("eager", "sdpa")
    assert made.busy_s > 0


@pytest.mark.parametrize(
    ("error", "is_memory"),
    [
        (MemoryError(), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to"), True),
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (RuntimeError("shapes differ"), False),
    ],
)
def test_running_out_of_memory_is_told_from_other_errors(error: Exception, is_memory: bool) -> None:
    """Python's, the CPU allocator's and CUDA's words for it are known."""
    assert failure.is_out_of_memory(error) is is_memory


def test_the_seed_is_not_the_workloads() -> None:
    """The order's randomness comes from the request, not from Python's global state."""
    random.seed(1)
    before = random.getstate()
    visited("eager")
    assert random.getstate() == before


def test_whoever_leaves_the_state_of_the_process_changed_is_an_error_and_harms_nobody() -> None:
    """Each change is seen after the step in which it was made, told in words, and undone before the next one."""
    torch.set_num_threads(1)
    state = State()
    names = [f"tests.meddlers:{name}" for name in meddlers.SAYS]
    made = visited("eager", "sdpa", *names)
    for name, words in meddlers.SAYS.items():
        outcome = made.outcomes[f"tests.meddlers:{name}"]
        assert (outcome.status, words in outcome.detail) == ("error", True), (name, outcome.detail)
        assert "slots" not in outcome.metrics
    assert (made.outcomes["eager"].status, made.outcomes["sdpa"].status) == ("ok", "ok")
    assert state.restore() == ""


@pytest.mark.parametrize("mode", ["inference", "train"])
def test_what_was_right_in_the_check_and_is_wrong_when_it_is_timed_is_incorrect(mode: str) -> None:
    """Outputs of timed calls and of a call on fresh values are judged, inputs and weights compared after the rounds."""
    says = {name: words for name, words in mutants.LATER.items() if mode == "inference" or name in mutants.LATER_TOO}
    made = visited("eager", "sdpa", "tests.foreign:reuses", *(f"tests.mutants:{name}" for name in says), mode=mode)
    for name, words in says.items():
        outcome = made.outcomes[f"tests.mutants:{name}"]
        assert (outcome.status, words in outcome.detail) == ("incorrect", True), (name, outcome)
        assert "slots" not in outcome.metrics
    honest = ["eager", "sdpa"] + ["tests.foreign:reuses"] * (mode == "inference")
    assert {made.outcomes[name].status for name in honest} == {"ok"}


def test_one_that_computes_two_items_of_the_batch_is_incorrect(monkeypatch: pytest.MonkeyPatch) -> None:
    """The items that float64 computes are drawn at random, and the whole batch is compared with plain eager."""
    monkeypatch.setattr(correctness, "WHOLE_BATCH_SCORES", 1)
    made = visited("eager", "sdpa", "tests.mutants:two_items", batch=8)
    assert statuses(made) == {"eager": "ok", "sdpa": "ok", "tests.mutants:two_items": "incorrect"}


def test_the_values_come_from_the_seed_of_the_request_and_it_is_kept() -> None:
    """Two processes see other values, and the record says which."""
    errors = set()
    for seed in (1, 2):
        request = visit.Request(point(), ("eager", "sdpa"), "eager", SHORT, seed, thorough=False)
        outcome = visit.make(request, lambda *_: None).outcomes["sdpa"]
        assert (outcome.status, outcome.metrics["seed"]) == ("ok", seed)
        errors.add(outcome.metrics["error"])
    assert len(errors) == 2
