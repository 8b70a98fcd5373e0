"""The state of the process: every change of it is seen, put back, and told in words."""

import gc
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from bench.measure import adapters, process_state
from bench.measure.process_state import LeftChanged, State, kept
from tests import meddlers

CHANGES: dict[str, Callable[[], object]] = {
    "torch's threads": lambda: torch.set_num_threads(torch.get_num_threads() + 1),
    "the default dtype": lambda: torch.set_default_dtype(torch.float64),
    "the default device": lambda: torch.set_default_device("meta"),
    "the float32 matmul precision": lambda: torch.set_float32_matmul_precision("medium"),
    "the float32 precision of mkldnn.matmul": meddlers.bfloat16_in_mkldnn,
    "the float32 precision of generic.all": lambda: setattr(torch.backends, "fp32_precision", "tf32"),
    "the float32 precision of cuda.matmul": lambda: setattr(torch.backends.cuda.matmul, "allow_tf32", True),
    "torch.backends.cudnn.benchmark": lambda: setattr(torch.backends.cudnn, "benchmark", True),
    "torch.backends.mkldnn.enabled": lambda: setattr(torch.backends.mkldnn, "enabled", False),
    "flash_sdp": lambda: torch.backends.cuda.enable_flash_sdp(False),
    "mem_efficient_sdp": lambda: torch.backends.cuda.enable_mem_efficient_sdp(False),
    "math_sdp": lambda: torch.backends.cuda.enable_math_sdp(False),
    "cudnn_sdp": lambda: torch.backends.cuda.enable_cudnn_sdp(False),
    "the order of sdp backends": lambda: torch._C._set_sdp_priority_order([0, 1, 2, 3, 4]),
    "the fast path of MultiheadAttention": lambda: torch.backends.mha.set_fastpath_enabled(False),
    "deterministic algorithms": lambda: torch.use_deterministic_algorithms(True, warn_only=True),
    "flush_denormal": lambda: torch.set_flush_denormal(True),
    "the gradient mode": lambda: torch.set_grad_enabled(False),
    "the inference mode": lambda: _enter(torch.inference_mode()),
    "autocast on cpu": lambda: torch.set_autocast_enabled("cpu", True),
    "anomaly detection": lambda: torch.autograd.set_detect_anomaly(True),
    "the environment variable HOME": lambda: os.environ.update(HOME="/elsewhere"),
    "the environment variable MINE": lambda: os.environ.update(MINE="1"),
    "the working directory": lambda: os.chdir("/"),
    "the handler of SIGINT": lambda: signal.signal(signal.SIGINT, lambda *_: None),
    "the timer ITIMER_REAL": lambda: signal.alarm(60),
    "time.perf_counter": lambda: setattr(time, "perf_counter", time.monotonic),
    "torch.nn.functional.scaled_dot_product_attention": lambda: setattr(
        torch.nn.functional, "scaled_dot_product_attention", torch.nn.functional.linear
    ),
    "the profile function": lambda: sys.setprofile(lambda *_: None),
    "garbage collection": gc.disable,
    "the thresholds of garbage collection": lambda: gc.set_threshold(1),
}

_entered: list[torch.inference_mode] = []


def _enter(mode: torch.inference_mode) -> None:
    _entered.append(mode)  # which leaves the mode when it is forgotten
    mode.__enter__()


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_named_and_put_back(name: str) -> None:
    """What was changed stands in the message by its name, and a second look finds nothing."""
    state = State()
    CHANGES[name]()
    assert f"{name} changed: " in state.restore()
    assert state.restore() == ""


def test_nothing_changed_is_nothing_said() -> None:
    """Work that leaves the state alone is not blamed, even if it changes it meanwhile."""
    with kept():
        with torch.inference_mode(), torch.autocast("cpu"), torch.nn.attention.sdpa_kernel([]):
            torch.ones(2, 2) @ torch.ones(2, 2)
        torch.manual_seed(1)
    assert State().restore() == ""


def test_importing_the_compiler_changes_nothing_and_its_settings_count() -> None:
    """What is compared of torch.compile is what is not at its default."""
    state = State()
    import torch._dynamo.config

    assert state.restore() == ""
    torch._dynamo.config.suppress_errors = True
    assert state.restore() == "left torch._dynamo.config.suppress_errors changed: True instead of nothing"
    assert torch._dynamo.config.suppress_errors is False


def test_new_variables_that_torch_sets_by_itself_stay() -> None:
    """A compiler that leaves its own variables behind is nobody's fault."""
    state = State()
    try:
        os.environ["TORCHINDUCTOR_OF_A_TEST"] = "1"
        assert state.restore() == ""
        assert os.environ["TORCHINDUCTOR_OF_A_TEST"] == "1"
    finally:
        del os.environ["TORCHINDUCTOR_OF_A_TEST"]


def test_an_exception_comes_through_and_the_state_is_put_back() -> None:
    """What was raised says more about a case than what it left behind."""
    before = torch.get_num_threads()

    @kept()
    def raises() -> None:
        torch.set_num_threads(before + 1)
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        raises()
    assert torch.get_num_threads() == before
    with pytest.raises(LeftChanged, match="torch's threads"), kept():
        torch.set_num_threads(before + 1)


def test_what_can_not_be_put_back_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of interop threads can be set once in a process."""
    state = State()
    threads = torch.get_num_interop_threads() + 1
    part = process_state._single("torch's interop threads", lambda: threads, None)
    parts = [part if "torch's interop threads" in one.read() else one for one in process_state.PARTS]
    monkeypatch.setattr(process_state, "PARTS", tuple(parts))
    assert state.restore().endswith("which can't be undone in this process")


def test_a_module_that_changes_the_state_when_it_is_imported_is_blamed_and_harms_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The import is looked at wherever it happens first; variables of its own it may set."""
    source = "import os, torch\nos.environ['SOME_LIBRARY'] = '1'\n{}\ndef adapt(layer):\n    return layer\n"
    (tmp_path / "good_citizen.py").write_text(source.format(""))
    (tmp_path / "bad_citizen.py").write_text(source.format("torch.set_default_dtype(torch.float64)"))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("SOME_LIBRARY", "0")
    monkeypatch.delenv("SOME_LIBRARY")
    for module in ("good_citizen", "bad_citizen"):
        assert callable(adapters.resolve(f"{module}:adapt"))
    assert torch.get_default_dtype() == torch.float32
    adapters.check("good_citizen:adapt")
    with pytest.raises(LeftChanged, match=r"default dtype changed: torch.float64 .* \(when it was imported\)"):
        adapters.check("bad_citizen:adapt")
