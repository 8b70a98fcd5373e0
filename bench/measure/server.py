"""The server of one replicate: it imports torch and the compiler once, and forks the processes that measure."""

import contextlib
import gc
from typing import Any

import torch

import impls
from bench.measure import compilation, judge, worker
from bench.measure.forking import Server
from bench.plan.names import is_own


def warm(request: dict[str, Any]) -> None:
    """Use once what torch imports at its first use, so that forked processes find it ready.

    That is the meta device, with which shapes are found out, and the compiler if an implementation compiles.
    Errors are left to the cases that have them. No module of a user is imported, and no GPU is used: a process that
    has used one can't be forked.
    """
    impls.ViTAttention(1, 1, 1).to("meta")(torch.empty(1, 1, 1, device="meta"))
    if any(impls.compiles(name) for name in request["implementations"] if not is_own(name)):
        with contextlib.suppress(Exception):
            from torch._inductor import config

            with config.patch(compile_threads=1):  # a process with threads can't be forked safely
                compilation.warm_toolchain("cpu")
            compilation.reset()
    gc.collect()
    gc.freeze()  # collecting garbage then skips what torch's import left, and forked processes share it


if __name__ == "__main__":
    Server({"worker": worker.work, "judge": judge.work}, warm).serve()
