"""What torch and NVML say about devices, and the rates that are measured; without NVML nothing is claimed."""

import platform
import sys
import types
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from bench.machine.rates import COPIED_BYTES
from bench.measure import devices
from bench.measure.devices import PROBE_BYTES, PROBE_SIDES, DeviceRates, SpeedProbe
from bench.measure.server import Worker
from tests.make.points import point
from tests.measure.stub import Announcements, put_nvml

NOTHING = {"clock_hz": None, "throttle": ()}


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """Return a stand-in for NVML with one GPU at 1.98 GHz that nothing holds down."""
    return put_nvml(
        monkeypatch,
        NVML_CLOCK_SM=1,
        nvmlDeviceGetClockInfo=lambda handle, kind: {("GPU-1234", 1): 1980}[handle, kind],
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda _handle: 0x01,
        nvmlSystemGetDriverVersion=lambda: "570.1",
    )


def test_a_worker_says_its_own_python_and_torch_and_the_driver(nvml: types.SimpleNamespace) -> None:
    """A worker of another interpreter than its parent's says so itself."""
    facts = devices.torch_facts()
    expected = (platform.python_version(), torch.__version__, "570.1")
    assert (facts["python"], facts["torch"], facts["driver"]) == expected


def test_a_clock_is_in_hertz_and_each_reason_is_named(nvml: types.SimpleNamespace) -> None:
    """That the GPU idled a moment ago slows nothing down; bits of a power cap and of heat are two names."""
    assert devices.gpu_state("cuda") == {"clock_hz": 1.98e9, "throttle": ()}
    nvml.nvmlDeviceGetCurrentClocksThrottleReasons = lambda _handle: 0x04 | 0x40
    assert devices.gpu_state("cuda")["throttle"] == ("software power cap", "hardware thermal slowdown")


def test_without_an_answer_nothing_is_claimed(nvml: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a GPU that is not there, an error of the driver nor a missing package is an error of the measurement."""
    monkeypatch.setattr(torch.cuda, "get_device_properties", Mock(side_effect=AssertionError("Invalid device id")))
    assert not devices.is_exclusive("cuda:7")
    nvml.nvmlInit = Mock(side_effect=nvml.NVMLError)
    assert devices.gpu_state("cuda") == NOTHING
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert devices.gpu_state("cuda") == NOTHING
    assert devices.torch_facts()["driver"] is None
    assert not devices.is_exclusive("cuda")


def test_a_gpu_that_one_process_holds_alone_is_a_mistake(
    nvml: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The line names it and its mode; in another mode, or if processes share it by MPS, there is none."""
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))

    def mistakes() -> list[str]:
        request = {"implementations": [], "needed": [], "layers": [], "devices": ["cuda:0"]}
        reply: list[str] = Worker().check(request, Announcements())["mistakes"]
        return reply

    modes = {"GPU-1234": 3}
    nvml.nvmlDeviceGetComputeMode = lambda handle: modes[handle]
    (line,) = mistakes()
    assert "cuda:0" in line
    assert "EXCLUSIVE_PROCESS" in line
    (tmp_path / "control").touch()
    assert mistakes() == []
    (tmp_path / "control").unlink()
    modes["GPU-1234"] = 0
    assert mistakes() == []


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_real_gpu_has_a_clock() -> None:
    """Between 100 MHz and 5 GHz."""
    pytest.importorskip("pynvml")
    assert 1e8 < (devices.gpu_state("cuda")["clock_hz"] or 0) < 5e9


def timed_by(monkeypatch: pytest.MonkeyPatch, seconds: Callable[[], float]) -> None:
    """Let every timing take so long, and products of two sizes be made."""
    monkeypatch.setattr(devices, "SIDES", {"cpu": (8, 16)})
    monkeypatch.setattr(devices, "timer", lambda _device, _timing: lambda call, _calls: (call(), seconds())[1])


def test_the_best_of_all_turns_and_sizes_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of 8 and 16 and a copy: the larger product in 2 ms is the faster one, until a turn of 1 ms."""
    turns = iter([1e-3] * 2 + [2e-3] * 3 + [1e-3] * 3)
    timed_by(monkeypatch, lambda: next(turns))
    rates = DeviceRates(point())
    assert rates.best(1, 0.0).flops_per_s == pytest.approx(2 * 16**3 / 2e-3)
    best = rates.best(1, 0.0)
    assert best.flops_per_s == pytest.approx(2 * 16**3 / 1e-3)
    assert best.bytes_per_s == pytest.approx(COPIED_BYTES["cpu"] / 1e-3)


def test_products_are_in_the_points_dtype_and_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel for bfloat16 may compute in float32: the faster of both is the limit."""
    calls: list[str] = []
    monkeypatch.setattr(devices, "product", lambda _device, dtype, side: lambda: calls.append(f"{dtype} {side}"))
    timed_by(monkeypatch, lambda: 1e-3)
    rates = DeviceRates(point(dtype="bfloat16"))
    calls.clear()
    rates.best(2, 0.0)
    assert calls == 2 * ["bfloat16 8", "bfloat16 16", "float32 8", "float32 16"]


def test_no_larger_product_follows_a_slow_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow device the first size is all there is."""
    timed_by(monkeypatch, lambda: 1.0)
    assert DeviceRates(point()).best(1, 0.0).flops_per_s == pytest.approx(2 * 8**3)


def test_turns_go_on_for_the_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the turns that are asked for, more are made until the time is over."""
    now = iter([0.0, *(0.1 * n for n in range(100))])
    copies: list[int] = []
    timed_by(monkeypatch, lambda: 1e-3)
    monkeypatch.setattr(devices, "perf_counter", lambda: next(now))
    rates = DeviceRates(point())
    monkeypatch.setattr(rates, "_copy", lambda: copies.append(1))
    rates.best(2, 0.55)
    assert len(copies) == 2 + 6


def test_a_probe_multiplies_in_the_points_dtype_and_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are timed after a call each, so that data are in the caches.

    The caches of a core have 48 KiB and 2 MiB on the machine of the published runs, and 1 MiB on common older ones: the
    product fits into the second one, and the copy doesn't fit into the first.
    """
    products: list[tuple[torch.dtype, torch.Size]] = []
    real = torch.mm

    def mm(factor: torch.Tensor, other: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        products.append((factor.dtype, factor.shape))
        return real(factor, other, out=out)

    monkeypatch.setattr(torch, "mm", mm)
    probe = SpeedProbe(point(dtype="bfloat16"))
    products.clear()
    times_s = probe.times_s()
    assert products == [(torch.bfloat16, (PROBE_SIDES["cpu"], PROBE_SIDES["cpu"]))] * 2
    assert all(time_s > 0 for time_s in times_s)
    assert 2 * 4 * PROBE_SIDES["cpu"] ** 2 < 1 << 20
    assert 2 * PROBE_BYTES["cpu"] > 1 << 21
