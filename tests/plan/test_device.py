"""The kinds of devices."""

import pytest

from bench.plan.device import default_sweep


@pytest.mark.parametrize(
    ("devices", "sweep"),
    [
        ([], "quick"),
        (["cpu"], "quick"),
        (["cuda"], "gpu"),
        (["cuda:1", "cuda"], "gpu"),
        (["cpu", "cuda"], "quick"),
        (["mps"], "quick"),
    ],
)
def test_the_device_chooses_the_default_sweep(devices: list[str], sweep: str) -> None:
    """Devices of several kinds have the CPU's, and so has one that is refused later."""
    assert default_sweep(devices) == sweep
