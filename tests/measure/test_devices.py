"""Devices as torch knows them."""

import pytest
import torch

from bench.measure.devices import device
from bench.measure.server import Worker
from tests.measure.stub import Announcements


def test_torchs_reason_is_said_of_a_gpu_that_it_cant_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line, also where the system sees a GPU, as with a driver that is too old."""

    def init() -> None:
        raise RuntimeError("The NVIDIA driver on your system is too old (found version 11040).\n  Please update it.")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "init", init)
    line = device("cuda").obstacle
    assert line.endswith("is too old (found version 11040). Please update it.")
    request = {"implementations": [], "needed": [], "layers": [], "devices": ["cuda"]}
    assert Worker().check(request, Announcements())["obstacles"] == {"cuda": line}
    assert device("cpu").obstacle == ""


@pytest.mark.skipif(bool(torch.version.cuda), reason="this torch is built for CUDA")
def test_a_torch_without_cuda_says_so() -> None:
    """Its own words are the reason."""
    assert "not compiled with CUDA" in device("cuda").obstacle
