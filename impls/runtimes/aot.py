"""AOTInductor: the layer compiled ahead of time into a library, which is called without guards."""

import hashlib
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from impls.attend import eager, sdpa
from impls.runtimes import Operator, Runtime

CALLED = re.compile(r"aoti_torch_cpu_(\w+?)\(|(cpp_fused\w+)\(")
"""The operators of torch and the fused kernels that the code of a package calls."""

NO_WORK = re.compile(r"_?(empty|reinterpret|view|as_strided)\w*")


class AOTInductor(Runtime):
    """A layer that AOTInductor has compiled for one shape.

    The package is in the compiler's cache, where later processes with the same weights find it.
    Source: PyTorch documentation, "AOTInductor: Ahead-Of-Time Compilation for Torch.Export-ed Models".
    """

    title = "AOTInductor"
    has_own_memory = False
    adapted = staticmethod(eager.adapt)
    """The adapter of the module that is compiled."""

    def compile(self, *xs: Tensor) -> None:
        """Export the layer for inputs like these, and compile it or find it in the cache."""
        from torch._inductor.runtime.cache_dir_utils import cache_dir

        self._package = Path(cache_dir()) / "packages" / f"{self._key(xs)}.pt2"
        self.was_cached = self._package.exists()
        if not self.was_cached:
            self._package.parent.mkdir(parents=True, exist_ok=True)
            module = type(self).adapted(self.layer)
            assert isinstance(module, nn.Module)
            exported = torch.export.export(module, xs)
            part = str(self._package.with_suffix(".part.pt2"))
            Path(torch._inductor.aoti_compile_and_package(exported, package_path=part)).replace(self._package)
        self._compiled = torch._inductor.aoti_load_package(str(self._package))

    def run(self, *xs: Tensor) -> Tensor:
        """Return the output."""
        result: Tensor = self._compiled(*xs)
        return result

    def operators(self) -> Sequence[Operator]:
        """Return the operators and fused kernels that the package's code calls."""
        with zipfile.ZipFile(self._package) as package:
            code = "".join(package.read(name).decode() for name in package.namelist() if name.endswith(".wrapper.cpp"))
        names = ("".join(match) for match in CALLED.findall(code))
        return [Operator(name) for name in dict.fromkeys(names) if not NO_WORK.fullmatch(name)]

    def _key(self, xs: tuple[Tensor, ...]) -> str:
        """Return a name for the layer with its weights, for inputs like these."""
        content = hashlib.sha256()
        described = (type(self).__name__, str(self.layer), vars(self.layer).get("mask"), vars(self.layer).get("scale"))
        forms = [(tuple(x.shape), x.dtype, x.device) for x in xs]
        form = (*forms, torch.get_num_threads(), torch.__version__)
        content.update(repr((*described, *form)).encode())
        for weight in self.layer.state_dict().values():
            content.update(weight.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
        return content.hexdigest()


class AOTInductorSDPA(AOTInductor):
    """A layer with the core of `sdpa` that AOTInductor has compiled for one shape."""

    adapted = staticmethod(sdpa.adapt)
