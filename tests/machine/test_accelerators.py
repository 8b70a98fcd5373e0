"""The accelerators of this machine, without torch."""

import pytest

from bench.machine import accelerators
from bench.machine.accelerators import available, gpus, torch_version


def test_the_installed_torch_is_known_without_importing_it() -> None:
    """Its own file says its version."""
    import importlib.metadata

    assert torch_version().partition("+")[0] == importlib.metadata.version("torch").partition("+")[0]


@pytest.mark.parametrize(
    ("names", "cuda", "expected"),
    [
        ([], "13.0", []),
        (["H100"], "", []),
        (["H100"], "13.0", ["cuda"]),
        (["H100", "H100", "L4"], "13.0", ["cuda", "cuda:2"]),
    ],
)
def test_one_device_of_each_kind_is_available(
    names: list[str], cuda: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If torch was built for them."""
    monkeypatch.setattr(accelerators, "gpus", lambda: names)
    monkeypatch.setattr(accelerators, "torch_cuda", lambda: cuda)
    assert available() == expected


@pytest.mark.parametrize("hidden", ["", "-1"])
def test_hidden_devices_are_none(hidden: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As CUDA_VISIBLE_DEVICES says it to torch too."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    assert gpus() == []
