"""Start a module of the suite in any interpreter: `python -P bootstrap.py MODULE WORD…`.

The suite's packages come from the folder of this file, because a repository may have its own folder `bench` and the
environment may lack the suite. All others come from PYTHONPATH or the current folder.
"""

import gc
import os
import runpy
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

INSTALLED = "attention_bench"
"""The only package of an installed suite; a checkout also has `bench` and `impls`."""

NEEDS = {"torch": "torch", "numpy": "numpy", "msgspec": "msgspec", "psutil": "psutil", "pynvml": "nvidia-ml-py"}
"""The modules that a server imports, with the packages that provide them."""


class Suite(MetaPathFinder):
    """A finder of packages with these names in a folder."""

    def __init__(self, names: Sequence[str], folder: Path) -> None:
        self._names, self._folder = names, folder

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of one of the packages; None for other modules."""
        del path, target
        return PathFinder.find_spec(fullname, [str(self._folder)]) if fullname in self._names else None


if __name__ == "__main__":
    _, module, *words = sys.argv
    is_installed = module.startswith(f"{INSTALLED}.")
    names = [INSTALLED] if is_installed else [INSTALLED, "bench", "impls"]
    sys.meta_path.insert(0, Suite(names, Path(__file__).parents[3 if is_installed else 2]))
    if os.getcwd() not in sys.path:  # noqa: PTH109 - the text is what Python itself puts there
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    sys.argv = [module, *words]
    gc.disable()  # collections would take a sixth of the time of imports; the module enables them
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except ModuleNotFoundError as error:
        if error.name not in NEEDS:
            raise
        missing = [package for name, package in NEEDS.items() if find_spec(name) is None]
        sys.exit(f"{error}; install it: {sys.executable} -m pip install {' '.join(missing)}")
