"""Devices as torch knows them, and how a process chooses one; the GPU is a stand-in."""

from collections.abc import Callable
from contextlib import closing

import pytest
import torch
from torch.nn import functional as F  # noqa: N812 - PyTorch's own convention

from bench.engine.pool import Pool
from bench.measure.devices import device
from bench.measure.process_state import ProcessState
from bench.measure.server import checked
from bench.sampling.requests import Check, Look
from tests.make import simulated_gpu
from tests.make.points import point
from tests.make.simulated_gpu import gpu
from tests.measure.stub import Announcements

__all__ = ["gpu"]

ASK_S = 60


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Put a GPU in place of CUDA's whose tensors are the CPU's; return the numbers of the devices that are chosen."""
    numbers: list[int] = []
    zeros = torch.zeros
    monkeypatch.setattr(torch, "zeros", lambda *shape, device: zeros(*shape))  # noqa: ARG005 - its name
    monkeypatch.setattr(torch.cuda, "set_device", numbers.append)
    return numbers


def test_no_implementation_is_blamed_for_the_order_of_backends(
    chosen: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first call of SDPA on a GPU sets the order for the whole process; it is made when the device is chosen."""
    order, sdpa = torch._C._get_sdp_priority_order(), F.scaled_dot_product_attention

    def first_sets_the_order(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        torch._C._set_sdp_priority_order(order[::-1])
        return sdpa(q, k, v)

    monkeypatch.setattr(F, "scaled_dot_product_attention", first_sets_the_order)
    try:
        device("cuda:1").choose()
        state = ProcessState()
        F.scaled_dot_product_attention(*torch.ones(3, 1, 1, 2, 8))
        assert (chosen, state.changes()) == ([1], "")
    finally:
        torch._C._set_sdp_priority_order(order)


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.skipif(not torch.version.cuda, reason="needs a build of torch for CUDA; no GPU")
def test_a_worker_of_a_gpu_may_use_cuda_where_implementations_compile() -> None:
    """The server that has used the compiler has asked CUDA; it forks none."""
    at = point(device="cuda", timing="device-cold")
    with closing(Pool(1, ("compiled_eager",))) as servers, servers.worker(at) as worker:
        assert "fork" not in worker.ask(Look(at, 1, ()), ASK_S).detail


def test_torchs_reason_is_said_of_a_gpu_that_it_cant_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line, also where the system sees a GPU, as with a driver that is too old."""

    def init() -> None:
        raise RuntimeError("The NVIDIA driver on your system is too old (found version 11040).\n  Please update it.")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "init", init)
    line = device("cuda").obstacle
    assert line.endswith("is too old (found version 11040). Please update it.")
    assert checked(Check((), (), (), ["cuda"]), Announcements()).obstacles == {"cuda": line}
    assert device("cpu").obstacle == ""


@pytest.mark.skipif(bool(torch.version.cuda), reason="this torch is built for CUDA")
def test_a_torch_without_cuda_says_so() -> None:
    """Its own words are the reason."""
    assert "not compiled with CUDA" in device("cuda").obstacle


@pytest.mark.parametrize(
    ("count", "name", "says"),
    [(0, "cuda", "sees none"), (2, "cuda:7", "no device cuda:7: this machine has 2 CUDA"), (2, "cuda:1", "")],
)
def test_a_gpu_that_is_not_there_is_an_obstacle(
    count: int, name: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text names the device and what there is."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    assert says in device(name).obstacle
    assert bool(says) is bool(device(name).obstacle)


def test_a_gpu_is_asked_nothing_before_it_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question would begin to use it, after which this process could no more be forked."""
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    monkeypatch.setattr(torch.cuda, "synchronize", _unasked)
    monkeypatch.setattr(torch.cuda, "mem_get_info", _unasked)
    assert not device("cuda").is_lost()
    assert device("cuda").free_bytes() is None


def _unasked(*_: object) -> None:
    raise AssertionError("CUDA was asked")


@pytest.mark.parametrize("fault", [lambda gpu: gpu.ruin(), lambda gpu: gpu.launch(1.0)])
def test_a_gpu_is_lost_once_it_no_more_answers(
    fault: Callable[[simulated_gpu.Gpu], None], gpu: simulated_gpu.Gpu
) -> None:
    """One that works for long is not."""
    fault(gpu)
    assert device("cuda").is_lost() is gpu.is_lost
