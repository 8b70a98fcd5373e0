"""The names of devices."""

import pytest

from bench.measure import devices


@pytest.fixture(params=["cpu", "cuda"])
def on(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a device; a GPU's tensors are the CPU's, and it draws them as a GPU does."""
    monkeypatch.setattr(devices.Gpu, "place", "cpu")
    return str(request.param)
