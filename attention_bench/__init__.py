"""The suite under the name of the installed package: `attention_bench.bench` and `attention_bench.impls`.

In a checkout these are the modules `bench` and `impls`, so the same user code runs in both.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType


class _OfCheckout(MetaPathFinder, Loader):
    """Finds `attention_bench.bench` and `attention_bench.impls` as `bench` and `impls`, with all modules inside."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        return spec_from_loader(fullname, self) if fullname.startswith(f"{__name__}.") else None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = import_module(module.__name__.removeprefix(f"{__name__}."))


if not Path(__file__).with_name("impls").exists():
    sys.meta_path.insert(0, _OfCheckout())
