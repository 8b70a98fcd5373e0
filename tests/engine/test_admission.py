"""The sweeps that a machine accepts."""

import pytest

from bench.engine.admission import check_devices, check_threads, too_large
from bench.machine import facts, nvml
from bench.plan.case import Point
from bench.plan.errors import WrongRequest
from bench.plan.sweep import Effort, Sweep
from tests.make.points import point
from tests.refusals import refusal

GIB = 1 << 30


def crowded(threads: int, *, oversubscribe: bool = False) -> Sweep:
    """Return a sweep of two points, one of them with this many threads."""
    effort = Effort(oversubscribe=oversubscribe)
    return Sweep("tiny", (point(threads=1), point(threads=threads)), ("eager",), effort=effort)


def test_as_many_threads_as_cores_are_admitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """All cores may be used; one thread more is refused with both numbers, unless the sweep insists."""
    monkeypatch.setattr(facts, "visible_cores", lambda: 4)
    check_threads(crowded(4))
    check_threads(crowded(64, oversubscribe=True))
    with pytest.raises(WrongRequest, match="threads = 64 is more than the 4 cores") as refusal:
        check_threads(crowded(64))
    assert "--oversubscribe" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def on(*points: Point) -> Sweep:
    """Return a sweep of points."""
    return Sweep("tiny", points, ("eager",))


@pytest.mark.parametrize(
    ("cuda", "hip", "gpus", "rule"),
    [
        ("", "6.4", [], "(torch 2.13.0 is built for HIP, but only NVIDIA GPUs are measured); expected cpu"),
        ("13.0", "", ["A"], "(visible NVIDIA GPUs: cuda:0); expected cpu or cuda:0"),
    ],
)
def test_a_gpu_that_is_not_there_is_refused(
    monkeypatch: pytest.MonkeyPatch, cuda: str, hip: str, gpus: list[str], rule: str
) -> None:
    """The line has the reason and the existing GPUs; a sweep with the CPU or an existing GPU too is measured."""
    monkeypatch.setattr(facts, "torch_version", lambda: "2.13.0")
    monkeypatch.setattr(facts, "torch_cuda", lambda: cuda)
    monkeypatch.setattr(facts, "torch_hip", lambda: hip)
    monkeypatch.setattr(nvml, "gpus", lambda: gpus)
    away = point(device="cuda:1", timing="device-cold")
    assert refusal(check_devices, on(away)).startswith(f"device = cuda:1 can't be used here {rule}; for a torch ")
    check_devices(on(away, point()))
    monkeypatch.setattr(facts, "torch_cuda", lambda: "13.0")
    monkeypatch.setattr(nvml, "gpus", lambda: ["A", "A"])
    check_devices(on(away))


def test_a_timing_that_no_device_of_a_sweep_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing would be measured; beside a point that can be timed so, the others end as unsupported."""
    monkeypatch.setattr(facts, "torch_cuda", lambda: "13.0")
    monkeypatch.setattr(nvml, "gpus", lambda: ["A"])
    wrong = point(timing="device-hot")
    assert refusal(check_devices, on(wrong)) == "timing = device-hot can't be used on cpu; expected host"
    check_devices(on(wrong, point(device="cuda", timing="device-hot")))
    monkeypatch.setattr(nvml, "gpus", list)
    both = refusal(check_devices, on(wrong, point(device="cuda", timing="device-hot")))
    assert "device = cuda can't be used here" in both
    assert "timing = device-hot can't be used on cpu" in both


def test_only_those_that_hold_too_much_are_named() -> None:
    """Into two gibibytes 8 items of 4096 tokens fit without held scores, or with one head's scores.

    If the reference is too large, no implementation can be checked: each has the same reason. It is computed on the
    host, also for a case on a GPU, whose own memory is not the host's.
    """
    names = ["eager", "sdpa_math", "manual", "sdpa", "online", "mykernel:adapt"]
    assert too_large(point(), names, GIB) == {}
    reasons = too_large(point(batch=8, num_tokens=4096, channels=12, token_len=12, num_heads=6), names, 2 * GIB)
    assert [*reasons] == ["eager", "sdpa_math"]
    assert all("2.00 GiB is free" in reason for reason in reasons.values())
    reasons = too_large(point(num_tokens=10_000_000), names, 64 * GIB)
    assert [*reasons] == names
    assert len({*reasons.values()}) == 1
    for tokens, named in ((4096, []), (100_000, ["eager"])):
        on_gpu = point(batch=8, num_tokens=tokens, num_heads=6, device="cuda", timing="device-cold")
        assert [*too_large(on_gpu, ["eager"], 2 * GIB)] == named
