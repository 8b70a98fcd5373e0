"""The server of one replicate: it imports torch and the compiler once, and forks the processes that measure.

`CaseWork` serves the requests for one case in such a process.
"""

import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import torch
from torch.utils.flop_counter import FlopCounterMode

import impls
from bench.measure import (
    compilation,
    described,
    failure,
    identity,
    judge,
    look,
    memory,
    user_code,
    workload,
)
from bench.measure.devices import device
from bench.measure.forking import Channel, ForkServer, Serve, serve
from bench.measure.measured_case import MeasuredCase
from bench.modules import sources
from bench.plan.device import CPU
from bench.sampling.requests import (
    Arrive,
    Check,
    Checked,
    Describe,
    Finish,
    Look,
    Looked,
    Outcome,
    Prepare,
    Prepared,
    Sample,
    Sampled,
    Shape,
    Warm,
)
from impls.catalogue import name_of
from impls.lookup import check, versions

T = TypeVar("T")


def warm(request: Warm) -> None:
    """Trigger torch's lazy imports once, so that forked processes find them done.

    These are the device meta, the shape checks of gradients, the compiler, the libraries of models, and the counter of
    operations, each only if the request needs it. The compiler and the libraries use CUDA, so processes forked after
    them can't use a GPU; for a GPU the request names neither.
    Errors are ignored here, because the cases raise them again. No user module is imported, and no GPU is used.
    """
    if request.traces:
        torch.empty(1, 1, device="meta") + 1  # imports most of the compiler, for seconds on some machines
    if request.gradients:
        with contextlib.suppress(ImportError):  # torch.autograd.grad imports it and sympy, for most of a second
            importlib.import_module("torch.fx.experimental.symbolic_shapes")
    if any(name_of(name).entry.compiles for name in request.implementations):
        with contextlib.suppress(Exception):
            _compile_once()
    for library in request.libraries:
        with contextlib.suppress(Exception):
            sources.library(library)
    if request.libraries:
        with FlopCounterMode(display=False):  # its first use imports for seconds
            torch.empty(1, 1).mm(torch.empty(1, 1))
    memory.give_back()  # free memory here would be small pages in forked processes
    gc.freeze()  # collections then skip the objects of torch's import, and forked processes share them


def _compile_once() -> None:
    """Compile a small function without threads or a GPU, because a process that has used either can't be forked."""
    from unittest.mock import patch

    from torch._inductor import config

    no_gpu = RuntimeError("the server uses no GPU")
    compilation.try_instructions()
    with config.patch(compile_threads=1), patch.object(torch.cuda, "_lazy_init", side_effect=no_gpu):
        compilation.warm_toolchain(CPU.name)
    torch.compiler.reset()


def _unresolved(names: Iterable[str]) -> Iterator[str]:
    """Yield a line for each implementation that can't be imported or lacks an option of its name."""
    for name in names:
        try:
            check(name)
        except impls.Unresolved as error:
            yield str(error)


def checked(request: Check, _channel: Channel) -> Checked:
    """Return facts about machine and packages, and a line for each implementation or GPU that can't be used.

    Only the needed implementations, and the user's own layers, are imported for it.
    """
    mistakes = [
        f"{name} must be in compute mode DEFAULT, because each implementation has a process of its own; "
        "it is in EXCLUSIVE_PROCESS. An administrator can run: nvidia-smi --compute-mode=DEFAULT"
        for name in request.devices
        if device(name).is_exclusive
    ]
    mistakes += _unresolved(name for name in request.needed if not name_of(name).is_own)
    before = {*sys.modules}
    mistakes += _unresolved(name for name in request.needed if name_of(name).is_own)
    for layer in request.layers:
        with contextlib.suppress(Exception, SystemExit):  # its rows say why
            importlib.import_module(layer.partition(":")[0])
    obstacles = {name: device(name).obstacle for name in request.devices}
    runtimes, modules = versions(request.implementations), user_code.imported_since(before)
    return Checked(mistakes, obstacles, identity.torch_facts(), runtimes, modules)


def arrived(request: Arrive, _channel: Channel) -> None:
    """Initialise the device of a case, and the compiler if it compiles, without importing user code.

    It takes seconds in a process that was not forked warm. Errors are ignored, because `Prepare` raises them again.
    """
    os.environ[compilation.CACHE] = request.cache
    with contextlib.suppress(Exception):
        workload.set_up(request.point)
        if name_of(request.implementation).entry.compiles:
            compilation.warm_toolchain(device(request.point.device).place)


class CaseWork:
    """Serves the requests for one case."""

    def __init__(self) -> None:
        self._case: MeasuredCase | None = None

    def prepare(self, request: Prepare, channel: Channel) -> Prepared | Outcome:
        """Prepare the case for its rounds."""
        self._case = MeasuredCase(request, channel)
        return self._done(MeasuredCase.prepare)

    def sample(self, request: Sample, _channel: Channel) -> Sampled | Outcome:
        """Take a sample."""
        return self._done(lambda case: case.sample(request))

    def finish(self, request: Finish, _channel: Channel) -> Outcome:
        """End the rounds."""
        return self._done(lambda case: case.finish(request))

    def _done(self, step: Callable[[MeasuredCase], T]) -> T | Outcome:
        """Return the result of a step, or the outcome if an exception ended the case."""
        assert self._case is not None, "the case was not prepared"
        outcome = self._case.outcome
        with failure.caught(outcome, self._case.request.point.device):
            return step(self._case)
        return outcome


def _looking(look_at: Callable[[Any, Channel], dict[str, Any]]) -> Serve:
    """Return a function that serves a look at a module, with any error as its outcome."""

    def looked(request: Any, channel: Channel) -> Looked:
        outcome, seen, raised = Outcome(), dict[str, Any](), ""
        with failure.caught(outcome, request.point.device):
            try:
                seen = look_at(request, channel)
            except Exception as error:
                raised = user_code.raised(error)
                raise
        return Looked(outcome.status, outcome.detail, raised, seen)

    return looked


def work(channel: Channel) -> None:
    """Serve the requests of a worker until the parent closes the pipe."""
    worker = CaseWork()
    served: dict[type, Serve] = {Check: checked, Arrive: arrived}
    served |= {Prepare: worker.prepare, Sample: worker.sample, Finish: worker.finish}
    served |= {Look: _looking(look.look), Shape: _looking(look.shape), Describe: _looking(described.described)}
    serve(served, channel)


def main() -> None:
    """Serve until the parent closes the pipe."""
    gc.enable()
    ForkServer({"worker": work, "judge": judge.work}, warm).serve()


if __name__ == "__main__":
    main()
