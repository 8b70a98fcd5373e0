"""Implementations that a benchmark must not reward: each saves work, or claims to, in a way that was seen in kernels.

EXPECTED says how each ends, and IN_TRAINING which of them train as well. The last two need a GPU.
"""

import gc
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterable
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from bench.measure import clock
from bench.plan.case import Point
from impls import Adapt, Implementation
from tests.make.adapters import HONEST_CALLS, Own, each_call, honest, later
from tests.make.points import point

KEPT_BYTES = 1 << 20

NUMBERS = "incorrect: .* is off by "
TIMED = r"incorrect: output( of item \d+)? \(in a timed call\) is off by"
"""What is said of an output that is wrong in timed calls alone."""

LATE = (
    r"incorrect: .*\((in a timed call|on fresh values after the rounds)\)"
    "|error: (impossible rate|reported |used )"
)
"""The details of hacks that are right at first; chance decides which of the later checks sees one first."""

EXPECTED: dict[str, str] = {
    "memo_by_id": LATE,
    "memo_by_address": LATE,
    "memo_by_shape": NUMBERS,
    "memo_by_one_value": f"{NUMBERS}|{LATE}",
    "batch_and_skip": LATE,
    "lazy": "incorrect: output is a _Lazy, expected a plain torch.Tensor",
    "background_thread": LATE,
    "slow_clock": "error: left time.perf_counter changed: .*; bench.measure.clock.perf_counter changed",
    "searches_for_the_answer": NUMBERS,
    "exits": "crashed: ended with exit status 0",
    "zeroes_its_input": "incorrect: edited its input in place",
    "uninitialised": f"{NUMBERS}|incorrect: output is not finite",
    "all_but_one_item": NUMBERS,
    "nan_later": r"incorrect: output is not finite \(in a timed call\)",
    "less_precise_later": TIMED,
    "half_of_the_batch_now_and_then": TIMED,
    "keeps_threads": "error: left torch's threads changed",
    "works_if_looked_at": LATE,
    "leaves_a_mode": "error: left the number of dispatch modes changed: 1 instead of 0",
    "leaves_a_profiler": "error: left the profile function changed",
    "stores_late": r"incorrect: output has attributes of its own \(untyped_storage\).* \(in a timed call\)",
    "leaves_a_process": "error: left a process running that it started",
    "spins_between_calls": r"ok: used \d+% of a core while others were timed",
    "keeps_a_buffer": "ok: ",
    "returns_one_buffer": "ok: returns the same memory for every output",
    "memo_by_version": "ok: ",
}
"""A pattern for the status and the detail of each, at a shape whose call takes longer than a timing.

There a slow warm-up wins nothing.
"""

IN_TRAINING = (
    "memo_by_id", "memo_by_shape", "batch_and_skip", "zeroes_its_input", "uninitialised", "all_but_one_item",
    "less_precise_later", "works_if_looked_at", "memo_by_version", "keeps_a_buffer",
)  # fmt: skip
"""Those that are tried in training too: they deal with outputs and gradients, the others with the process."""

LONG = {"batch": 8, "num_tokens": 128, "channels": 128, "num_heads": 4}
"""The sizes of a point whose calls take longer than a timing."""


def every_hack() -> dict[Point, dict[str, str]]:
    """Return the patterns of all, by the point where each is tried and by its name."""
    trained = {f"{__name__}:{name}": EXPECTED[name] for name in IN_TRAINING}
    return {point(**LONG, mode="train"): trained, point(**LONG): {f"{__name__}:{n}": e for n, e in EXPECTED.items()}}


class _Replaced(torch.autograd.Function):
    """An output and gradients that come from elsewhere."""

    @staticmethod
    def forward(ctx: Any, output: Callable[[], Tensor], gradients: Any, *_inputs: Tensor) -> Tensor:
        """Return the output."""
        ctx.gradients = gradients
        return output()

    @staticmethod
    def backward(ctx: Any, *directions: Tensor) -> Any:
        """Return the gradients."""
        return None, None, *ctx.gradients(directions[0])


def _replaced(output: Callable[[], Tensor], gradients: Callable[[Tensor], Iterable[Tensor]], *inputs: Tensor) -> Tensor:
    """Return an output as a function of inputs, with these gradients for a direction."""
    y: Tensor = _Replaced.apply(output, gradients, *inputs)  # type: ignore[no-untyped-call]
    return y


class _Answer:
    """The output of a layer for an input, and the gradients once they were asked for."""

    def __init__(self, layer: nn.Module, x: Tensor) -> None:
        self._inputs = [x.detach().clone().requires_grad_(x.requires_grad), *layer.parameters()]
        self.y: Tensor = layer(self._inputs[0])
        self._gradients: tuple[Tensor, ...] = ()

    def returned(self, x: Tensor) -> Tensor:
        """Return the output, as a function of another x if there are gradients."""
        if not x.requires_grad:
            return self.y
        return _replaced(self.y.detach().clone, self.gradients, x, *self._inputs[1:])

    def gradients(self, direction: Tensor) -> Iterable[Tensor]:
        """Return the gradients of x and of all weights."""
        if not self._gradients:
            self._gradients = torch.autograd.grad(self.y, self._inputs, direction)
        return self._gradients


def _computed(own: Own, name: Hashable, x: Tensor, *, anew: bool) -> Tensor:
    """Return the stored answer with this name as the output for x, and compute it first if it must be renewed."""
    if anew:
        own.kept[name] = _Answer(own.layer, x)
    y: Tensor = own.kept[name].returned(x)
    return y


def _remembering(key: Callable[[Tensor], Hashable]) -> Adapt:
    """Return an adapter that computes the layer once for each key of an input."""
    return each_call(lambda own, x: _computed(own, key(x), x, anew=key(x) not in own.kept))


memo_by_id = _remembering(id)
"""Remembers answers by the identity of the input, whose values change."""

memo_by_address = _remembering(lambda x: (x.data_ptr(), x.shape, x.stride()))
"""Remembers answers by the address of the input."""

memo_by_shape = _remembering(lambda x: (x.shape, x.dtype))
"""Remembers one answer for all inputs of a shape."""

memo_by_one_value = _remembering(lambda x: round(x.flatten()[0].item()))
"""Remembers answers by a poor fingerprint of the values."""

memo_by_version = _remembering(lambda x: (x.data_ptr(), x._version))
"""Remembers answers by address and version, which together tell the values: no values are repeated."""


@each_call
def batch_and_skip(own: Own, x: Tensor) -> Tensor:
    """Does the work of one call, and skips it in the next hundred."""
    return _computed(own, "answer", x, anew=own.calls <= HONEST_CALLS or own.calls % 100 == 0)


class _Lazy(Tensor):
    """A tensor that computes itself at the first operation on it."""

    compute: Callable[[], Tensor]

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Compute all such arguments, then run the function."""
        return func(*(value.compute() if isinstance(value, _Lazy) else value for value in args), **(kwargs or {}))


@each_call
def lazy(own: Own, x: Tensor) -> Tensor:
    """Returns a tensor that does the work only when it is read, outside of the timing."""
    y = x.new_empty(0).as_subclass(_Lazy)
    y.compute = lambda: own(x)
    return y


def _filled_later(start: Callable[[Callable[[], object]], object]) -> Adapt:
    """Return an adapter whose outputs are filled by work that `start` begins without waiting for it."""

    def work(own: Own, x: Tensor) -> Tensor:
        y = torch.zeros_like(x)

        def fill() -> None:
            time.sleep(0.01)
            with torch.inference_mode():
                y.copy_(own(x))

        start(fill)
        return y

    return later(work)


background_thread = _filled_later(lambda fill: threading.Thread(target=fill, daemon=True).start())
"""Returns at once, and a thread fills the output a little later."""

_real_clock = time.perf_counter


def _in_rounds() -> bool:
    """Return whether a call is timed: garbage collection is off then."""
    return not gc.isenabled()


def _patch_clocks() -> None:
    time.perf_counter = lambda: _real_clock() / 2
    clock.perf_counter = time.perf_counter  # type: ignore[attr-defined]


slow_clock = honest(_patch_clocks, _in_rounds)
"""Halves the time of Python's clock and of the measurement's."""


@each_call
def searches_for_the_answer(own: Own, x: Tensor) -> Tensor:
    """Returns a tensor of the output's shape that it finds in the process, in the hope of the expected output."""
    y = own(x)
    for each in gc.get_objects():
        if type(each) is Tensor and each.shape == y.shape and each is not x and each is not y:
            return each.detach().clone()
    return torch.zeros_like(y)


exits = honest(lambda: os._exit(0))
"""Ends the process as if all had gone well."""


@each_call
def zeroes_its_input(own: Own, x: Tensor) -> Tensor:
    """Edits the input so that a trivial output is right for it."""
    x.data.zero_()
    return own(x)


@each_call
def uninitialised(own: Own, x: Tensor) -> Tensor:
    """Returns freed memory, which may still hold an answer or gradients."""
    inputs = (x, *own.layer.parameters())
    return _replaced(lambda: torch.empty_like(x), lambda _: map(torch.empty_like, inputs), *inputs)


@each_call
def all_but_one_item(own: Own, x: Tensor) -> Tensor:
    """Computes the items of the batch but one, and copies another for it."""
    y = own(x[1:])
    return torch.cat([y[:1], y])


nan_later = later(lambda own, x: own(x) * float("nan"))
"""Returns NaN after the check."""

less_precise_later = later(lambda own, x: own(x).bfloat16().to(x.dtype))
"""Rounds to bfloat16 after the check."""


@each_call
def keeps_a_buffer(own: Own, x: Tensor) -> Tensor:
    """Keeps memory from call to call, which a call's peak doesn't include."""
    if not own.kept:
        own.kept["buffer"] = torch.empty(KEPT_BYTES, dtype=torch.uint8)
    return own(x)


@each_call
def returns_one_buffer(own: Own, x: Tensor) -> Tensor:
    """Returns its own buffer at every call, as a captured graph does."""
    y = own(x)
    buffer: Tensor = own.kept.setdefault("buffer", torch.empty_like(y))
    return buffer.copy_(y)


keeps_threads = honest(lambda: torch.set_num_threads(torch.get_num_threads() + 1))
"""Takes more threads than the point has."""


def _is_looked_at() -> bool:
    """Return whether the implementation's call comes from the place from which outputs are kept."""
    return sys._getframe(3).f_code.co_name == "compute"


@each_call
def works_if_looked_at(own: Own, x: Tensor) -> Tensor:
    """Computes the output only in calls whose output is kept."""
    return _computed(own, "answer", x, anew=not own.kept or _is_looked_at())


class _Waiting(TorchDispatchMode):
    """Fills outputs that are still empty when something is done with them."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own
        self.fills: dict[int, Callable[[], Tensor]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Fill the arguments, then run the function."""
        for each in args:
            self.fills.pop(id(each), lambda: None)()
        return func(*args, **(kwargs or {}))


def _put_off(wait: Callable[[Own, Tensor, Callable[[], Tensor]], None]) -> Adapt:
    """Return an adapter that is honest at first; then `wait` gets an empty output, and what fills and returns it."""

    def work(own: Own, x: Tensor) -> Tensor:
        if not _in_rounds():
            return own(x)
        y = torch.empty_like(x)
        wait(own, y, lambda: Tensor.copy_(y, own(x)))
        return y

    return each_call(work)


def _wait_for_an_operator(own: Own, y: Tensor, fill: Callable[[], Tensor]) -> None:
    if "mode" not in own.kept:
        own.kept["mode"] = _Waiting()
        own.kept["mode"].__enter__()
    own.kept["mode"].fills[id(y)] = fill


def _wait_for_a_function(_own: Own, _y: Tensor, fill: Callable[[], Tensor]) -> None:
    def called(frame: FrameType, _event: str, _of: object) -> None:
        if frame.f_code.co_name == "share_memory":
            sys.setprofile(None)
            fill()

    sys.setprofile(called)


leaves_a_mode = _put_off(_wait_for_an_operator)
"""Does the work at the first operation on its output, by a mode that it leaves on."""

leaves_a_profiler = _put_off(_wait_for_a_function)
"""Does the work when the suite looks where its output lies, by a profile function that it leaves."""

stores_late = _put_off(lambda _, y, fill: setattr(y, "untyped_storage", lambda: Tensor.untyped_storage(fill())))
"""Does the work when the address of its output is read, through an attribute of the plain tensor."""

leaves_a_process = honest(lambda: subprocess.run(["sh", "-c", "setsid sleep 20 &"], check=True), _in_rounds, once=True)
"""Starts a process in a session of its own in a timed call, and its parent ends."""


def _spin() -> None:
    while True:
        pass


spins_between_calls = honest(lambda: threading.Thread(target=_spin, daemon=True).start(), _in_rounds, once=True)
"""Has a thread that waits for work by spinning, and takes a core from others."""


def _half(own: Own, x: Tensor, *, unless: bool = False) -> Tensor:
    """Return the layer's output, or that for half of the batch, twice."""
    if unless:
        return own(x)
    half = own(x[: (len(x) + 1) // 2])
    return torch.cat([half, half])[: len(x)]


_chance = random.Random(1)


@each_call
def half_of_the_batch_now_and_then(own: Own, x: Tensor) -> Tensor:
    """Computes half of the batch in a third of the calls outside checks."""
    return _half(own, x, unless=not _in_rounds() or _chance.random() > 1 / 3)


def _stale_gradients(own: Own, x: Tensor) -> Tensor:
    """Return the right output and gradient of x, with the gradients of weights of an earlier input."""
    y = own(x)
    if not _in_rounds():
        own.kept["gradients"] = x.detach().clone()
        return y
    weights = [*own.layer.parameters()]
    earlier = torch.autograd.grad(own(own.kept["gradients"]), weights, torch.ones_like(y))
    return _replaced(y.detach().clone, lambda d: [torch.autograd.grad(y, x, d)[0], *earlier], x, *weights)


no_gradients_later = each_call(_stale_gradients)
"""In training returns other gradients of weights in timed calls."""


def side_stream(layer: nn.Module) -> Implementation:
    """Computes on a stream of its own, which events on the current one don't time."""
    stream = torch.cuda.Stream()

    def call(x: Tensor) -> Tensor:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            y: Tensor = layer(x)
        return y

    return call


@each_call
def ruins_the_context(own: Own, x: Tensor) -> Tensor:
    """Reads beyond a tensor, after which the process can't use the GPU any more."""
    y = own(x)
    beyond = torch.full((1,), y.numel() + 1, device=y.device)
    return y + y.flatten()[beyond]
