"""The heap of a test, and the names of devices."""

import gc

import pytest

from bench.measure import devices


@pytest.fixture(autouse=True, scope="module")
def _heap_of_others() -> None:
    """Let garbage collection, which runs for each measured case, skip objects of earlier modules."""
    gc.freeze()


@pytest.fixture(params=["cpu", "cuda"])
def on(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a device; a GPU's tensors are the CPU's, and it draws them as a GPU does."""
    monkeypatch.setattr(devices.Gpu, "place", "cpu")
    return str(request.param)
