"""Devices as torch knows them, and what is said of a GPU that can't be used."""

from contextlib import closing

import pytest
import torch

from bench.engine.pool import Pool
from bench.measure import workload
from bench.measure.devices import device
from bench.measure.server import checked
from bench.sampling.requests import Check, Look
from tests.make.points import point
from tests.measure.stub import Announcements

ASK_S = 60


def test_a_process_that_was_forked_from_one_that_asked_cuda_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the cause, and is no message of CUDA at some later call. A CPU can be used there."""
    monkeypatch.setattr(torch.cuda, "_is_in_bad_fork", lambda: True)
    workload.set_up(point())
    with pytest.raises(RuntimeError, match="forked from one that has asked CUDA"):
        workload.set_up(point(device="cuda"))


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
