"""The server of one replicate: it imports torch and the compiler once, and forks the processes that measure.

`CaseWork` is what such a process does for one case, request by request.
"""

import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any
from unittest.mock import patch

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
from bench.measure.forking import Channel, ForkServer, serve
from bench.measure.measured_case import CaseRequest, MeasuredCase
from bench.modules import sources
from bench.plan.case import Point
from bench.plan.device import CPU
from bench.plan.names import is_own
from bench.sampling.inputs import InputValues
from impls.lookup import check

ENVELOPE = ("request", "id")
"""What a request has beside its arguments."""


def warm(request: dict[str, Any]) -> None:
    """Use once what torch imports at its first use, so that forked processes find it ready.

    That is the device meta if modules of others are traced or an implementation compiles, what compares the shapes of
    gradients, the compiler, the libraries that models come from, and the counter of their operations. Compiler and
    libraries ask CUDA about its devices, so that forked processes can't use a GPU: for those the request names neither.
    Errors are left to the cases that have them. No module of a user is imported, and no GPU is used.
    """
    if request["traces"]:
        torch.empty(1, 1, device="meta") + 1  # imports most of the compiler, for seconds on some machines
    if request["gradients"]:
        with contextlib.suppress(ImportError):  # torch.autograd.grad imports it, with sympy, for most of a second
            importlib.import_module("torch.fx.experimental.symbolic_shapes")
    if any(impls.compiles(name) for name in request["implementations"] if not is_own(name)):
        with contextlib.suppress(Exception):
            _compile_once()
    for library in request.get("libraries", ()):
        with contextlib.suppress(Exception):
            sources.library(library)
    if request.get("libraries"):
        with FlopCounterMode(display=False):  # its first use imports for seconds
            torch.empty(1, 1).mm(torch.empty(1, 1))
    memory.give_back()  # memory that is free here would be small pages in the processes that are forked
    gc.freeze()  # collecting garbage then skips what torch's import left, and forked processes share it


def _compile_once() -> None:
    """Compile a small function without threads and without a GPU: a process that has used either can't be forked."""
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


class CaseWork:
    """Serves `check`; for a case `arrive`, `prepare`, `sample` and `finish`."""

    def __init__(self) -> None:
        self._case: MeasuredCase | None = None

    def check(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Reply with facts about machine and packages, and a line for each implementation or GPU that can't be used.

        Only the implementations that are `needed` are imported for it, and the own `layers` with them. `modules` has
        the code that names of the user's own bring in, `obstacles` why torch can't use a device, empty if it can.
        """
        mistakes = [
            f"{name} must be in compute mode DEFAULT, because each implementation has a process of its own; "
            "it is in EXCLUSIVE_PROCESS. An administrator can run: nvidia-smi --compute-mode=DEFAULT"
            for name in request["devices"]
            if device(name).is_exclusive
        ]
        needed = request["needed"]
        mistakes += _unresolved(name for name in needed if not is_own(name))
        before = {*sys.modules}
        mistakes += _unresolved(name for name in needed if is_own(name))
        for layer in request["layers"]:
            with contextlib.suppress(Exception, SystemExit):  # its rows say why
                importlib.import_module(layer.partition(":")[0])
        return {
            "mistakes": mistakes,
            "obstacles": {name: device(name).obstacle for name in request["devices"]},
            "facts": identity.torch_facts(),
            "runtimes": impls.versions(request["implementations"]),
            "modules": user_code.imported_since(before),
        }

    def arrive(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Begin to use the device of a case, and the compiler if it compiles; nothing of a user is imported.

        That takes seconds if the process was not forked warm. Errors are left to `prepare`, which does the same.
        """
        os.environ[compilation.CACHE] = request["cache"]
        point, name = Point(**request["point"]), request["implementation"]
        with contextlib.suppress(Exception):
            workload.set_up(point)
            if not is_own(name) and impls.compiles(name):
                compilation.warm_toolchain(device(point.device).place)
        return {}

    def prepare(self, request: dict[str, Any], channel: Channel) -> dict[str, Any]:
        """Prepare a case; reply with its outcome so far."""
        values = request["case"]
        inputs = {name: InputValues(*each) for name, each in values["inputs"].items()}
        own = {"point": Point(**values["point"]), "files": request["files"], "inputs": inputs}
        self._case = MeasuredCase(CaseRequest(**{**values, **own}), channel)
        with self._caught() as case:
            case.prepare()
        return {
            **case.reply(),
            "call_s": case.call_s if case.outcome.status == "ok" else None,
            "reuses": case.reuses,
            **case.said,
        }

    def step(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Do a step of the prepared case; reply with what it says, or with the outcome if that is nothing."""
        arguments = {name: value for name, value in request.items() if name not in ENVELOPE}
        with self._caught() as case:
            if said := getattr(case, request["request"])(**arguments):
                return {**said, "status": "ok"}
        return case.reply()

    @contextlib.contextmanager
    def _caught(self) -> Iterator[MeasuredCase]:
        """Yield the case; an exception inside ends it."""
        assert self._case is not None, "the case was not prepared"
        with failure.caught(self._case.outcome, self._case.request.point.device):
            yield self._case


def _seen(look_at: Callable[..., dict[str, Any]], request: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Return what a look at a module sees, how it ended, and the error of user code behind that."""
    outcome, seen, raised = failure.Outcome(), dict[str, Any](), ""
    with failure.caught(outcome, request["point"]["device"]):
        try:
            seen = look_at(request, channel)
        except Exception as error:
            raised = user_code.raised(error)
            raise
    return {"status": outcome.status, "detail": outcome.detail, "raised": raised, "seen": seen}


def work(channel: Channel) -> None:
    """Serve the requests of a worker until the parent closes the pipe."""
    worker = CaseWork()
    requests = {"check": worker.check, "arrive": worker.arrive, "prepare": worker.prepare}
    steps = dict.fromkeys(("sample", "finish"), worker.step)
    looks = {"look": look.look, "shape": look.shape, "describe": described.described}
    serve({**requests, **steps, **{name: partial(_seen, each) for name, each in looks.items()}}, channel)


def main() -> None:
    """Serve until the parent closes the pipe."""
    ForkServer({"worker": work, "judge": judge.work}, warm).serve()


if __name__ == "__main__":
    main()
