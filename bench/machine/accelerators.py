"""The accelerators that torch can use on this machine, found without importing torch, which takes seconds."""

import importlib.util
import os
import re
from pathlib import Path


def torch_version() -> str:
    """Return the version of the torch that is installed, empty if there is none."""
    return _declared("__version__")


def torch_cuda() -> str:
    """Return the version of CUDA that the installed torch was built for, empty if it has none."""
    return _declared("cuda")


def gpus() -> list[str]:
    """Return the names of the NVIDIA GPUs that a process may use, in their order; none without a driver."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and visible.strip() in ("", "-1"):
        return []
    try:
        import pynvml

        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
        names = [str(pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(number))) for number in range(count)]
    except Exception:  # no package, no driver, or no device: pynvml has an error of its own for each
        return []
    return names if visible is None else names[: len(visible.split(","))]


def available() -> list[str]:
    """Return a device of each kind of accelerator that torch can use: `cuda`, and `cuda:1` if that is another kind."""
    if not torch_cuda():
        return []
    first: dict[str, int] = {}
    for number, name in enumerate(gpus()):
        first.setdefault(name, number)
    return ["cuda" if number == 0 else f"cuda:{number}" for number in first.values()]


def _declared(name: str) -> str:
    """Return what torch's version file says of itself."""
    found = importlib.util.find_spec("torch")
    if found is None or not found.origin:
        return ""
    try:
        text = (Path(found.origin).parent / "version.py").read_text(encoding="utf-8")
    except OSError:
        return ""
    match = re.search(rf"^{name}\b[^=\n]*= *'([^']*)'", text, re.MULTILINE)
    return match[1] if match else ""
