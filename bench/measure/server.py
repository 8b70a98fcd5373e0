"""The server of one replicate: it imports torch and the compiler once, and forks the processes that measure."""

import contextlib
import gc
from typing import Any
from unittest.mock import patch

import torch
from torch.utils.flop_counter import FlopCounterMode

import impls
from bench.measure import compilation, judge, system_memory, worker
from bench.measure.forking import Server
from bench.plan.names import is_own
from impls.models import sources


def warm(request: dict[str, Any]) -> None:
    """Use once what torch imports at its first use, so that forked processes find it ready.

    That is the meta device, with which shapes are found out, the compiler if an implementation compiles, and the
    libraries that models come from.
    Errors are left to the cases that have them. No module of a user is imported, and no GPU is used: a process that
    has used one can't be forked.
    """
    impls.ViTAttention(1, 1, 1).to("meta")(torch.empty(1, 1, 1, device="meta"))
    if any(impls.compiles(name) for name in request["implementations"] if not is_own(name)):
        with contextlib.suppress(Exception):
            _compile_once()
    for library in request.get("libraries", ()):
        with contextlib.suppress(Exception):
            sources.library(library)
    if request.get("libraries"):
        with FlopCounterMode(display=False):  # its first use imports for seconds
            torch.empty(1, 1).mm(torch.empty(1, 1))
    system_memory.give_back()  # memory that is free here would be small pages in the processes that are forked
    gc.freeze()  # collecting garbage then skips what torch's import left, and forked processes share it


def _compile_once() -> None:
    """Compile a small function without threads and without a GPU: a process that has used either can't be forked."""
    from torch._inductor import codecache, config

    with config.patch(compile_threads=1), patch.object(torch.cuda, "_lazy_init", _no_gpu):
        compilation.warm_toolchain("cpu")
    torch.compiler.reset()
    codecache.CacheBase.get_system.cache_clear()  # it names the GPU


def _no_gpu() -> None:
    raise RuntimeError("the server uses no GPU")


if __name__ == "__main__":
    Server({"worker": worker.work, "judge": judge.work}, warm).serve()
