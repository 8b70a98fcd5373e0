"""Implementations that put work off until the suite touches what it was given, or that don't do it in some calls.

EXPECTED says how each ends: IN_TRAINING in training, SHORT at calls shorter than a timing, the others at longer ones.
"""

import contextlib
import os
import signal
import sys
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from bench.plan.case import Point
from impls import Adapt, Implementation
from tests import hacks
from tests.children import start_sibling
from tests.hacks import _in_rounds, _Lazy
from tests.make.adapters import Own, each_call, honest
from tests.make.points import point

LEFT = r"error: left the number of {} changed: \d+ instead of \d+"
OF_ITS_OWN = r"incorrect: {} has '{}' of its own, expected a plain torch.Tensor \(in a timed call\)"

EXPECTED = {
    "detaches_late": OF_ITS_OWN.format("output", "detach"),
    "stores_late": OF_ITS_OWN.format("output", "untyped_storage"),
    "watches_its_input": OF_ITS_OWN.format("input", "detach"),
    "leaves_a_dispatch_mode": LEFT.format("dispatch modes"),
    "leaves_a_function_mode": LEFT.format("function modes"),
    "replaces_a_method": "error: left torch.Tensor.detach changed",
    "replaces_a_function": "error: left the suite's own share_memory changed",
    "replaces_a_kernel": LEFT.format("kernels of aten::copy_"),
    "profiles_the_suite": "error: left the profile function changed",
    "waits_for_an_alarm": "error: left the timer ITIMER_REAL changed: pending instead of nothing",
    "answers_for_its_layer": (
        "incorrect: output( of item .*)? \\(in a timed call\\) is (off by|not finite)|"
        "error: its clock disagrees"  # what it puts off lies between its timings, and is most of the wait if it is slow
    ),
    "lazy_gradients": r"incorrect: gradient is a _Lazy, expected a plain torch.Tensor \(in a timed call\)",
    "gradients_of_their_own": OF_ITS_OWN.format("gradient", "copy_"),
    "skips_the_first_calls": (
        r"incorrect: output( of item \d+)? \((in a timed|on fresh).*\) is (off by|not finite)|"
        "error: its clock disagrees"  # its timings have parts: on a slow machine much lies between them
    ),
    "skips_when_let_go": "ok: returns the same memory for every output",
    "starts_a_sibling": "error: started processes that are not its own children: 1",
    "leaves_its_core": "error: left its core in a sample",
    "marks_its_tensors": "ok: $",
    "negates": "incorrect: output has DispatchKeySet.*Negative.*, expected DispatchKeySet.* of a plain torch.Tensor",
}
"""A pattern for the status and the detail of each."""

IN_TRAINING = ("lazy_gradients", "gradients_of_their_own")
SHORT = ("skips_the_first_calls", "skips_when_let_go")

LONG = {"batch": 8, "num_tokens": 128, "channels": 128, "num_heads": 4}
"""The sizes of a point whose calls take longer than a timing."""


def every_hack() -> dict[Point, dict[str, str]]:
    """Return the patterns of those here and in `hacks`, by the point where each is tried and by its name.

    Those that harm others come last: after them processes are asked one at a time.
    """
    trained, short = point(**LONG, mode="train"), point(batch=2, num_tokens=64, channels=64, num_heads=2)
    others = [name for name in EXPECTED if name not in (*IN_TRAINING, *SHORT)]
    return {
        trained: {**_named(hacks, hacks.IN_TRAINING), **_named(sys.modules[__name__], IN_TRAINING)},
        short: _named(sys.modules[__name__], SHORT),
        point(**LONG): {**_named(hacks, hacks.EXPECTED), **_named(sys.modules[__name__], others)},
    }


def _named(module: Any, names: Iterable[str]) -> dict[str, str]:
    return {f"{module.__name__}:{name}": module.EXPECTED[name] for name in names}


_of_class, _copied = Tensor.detach, Tensor.copy_


def _later(wait: Callable[[Own, Tensor, Callable[[], Tensor]], None]) -> Adapt:
    """Return an adapter that is honest at first; then `wait` gets an empty output, and what fills and returns it."""

    def work(own: Own, x: Tensor) -> Tensor:
        if not _in_rounds():
            return own(x)
        y = torch.empty_like(x)
        waiting = [lambda: _copied(y, own(x))]
        wait(own, y, lambda: waiting.pop()() if waiting else y)
        return y

    return each_call(work)


def _by_attribute(name: str) -> Adapt:
    return _later(lambda _own, y, fill: setattr(y, name, lambda: getattr(Tensor, name)(fill())))


detaches_late = _by_attribute("detach")
"""Does the work when its output is detached, by an attribute of the plain tensor."""

stores_late = _by_attribute("untyped_storage")
"""Does the work when somebody asks where its output lies."""


@each_call
def watches_its_input(own: Own, x: Tensor) -> Tensor:
    """Lets its input say when it will be written anew."""
    if _in_rounds():
        x.detach = lambda: _of_class(x)  # type: ignore[method-assign]
    return own(x)


class _Waiting:
    """The outputs that are still empty, by their identity, and what fills them."""

    def __init__(self) -> None:
        self.fills: dict[int, Callable[[], Tensor]] = {}

    def fill(self, args: Any) -> None:
        """Fill those among the arguments of an operation."""
        for each in args:
            if fill := self.fills.pop(id(each), None):
                fill()


class _DispatchMode(TorchDispatchMode, _Waiting):
    def __init__(self) -> None:
        TorchDispatchMode.__init__(self)
        _Waiting.__init__(self)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Fill the arguments, then do what was asked for."""
        self.fill(args)
        return func(*args, **(kwargs or {}))


class _FunctionMode(TorchFunctionMode, _Waiting):
    def __init__(self) -> None:
        TorchFunctionMode.__init__(self)
        _Waiting.__init__(self)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Fill the arguments, then do what was asked for."""
        self.fill(args)
        return func(*args, **(kwargs or {}))


def _by_mode(kind: type[Any]) -> Adapt:
    def wait(own: Own, y: Tensor, fill: Callable[[], Tensor]) -> None:
        if "mode" not in own.kept:
            own.kept["mode"] = kind()
            own.kept["mode"].__enter__()
        own.kept["mode"].fills[id(y)] = fill

    return _later(wait)


leaves_a_dispatch_mode = _by_mode(_DispatchMode)
"""Does the work at the first operation on its output, by a mode that it leaves on."""

leaves_a_function_mode = _by_mode(_FunctionMode)
"""Does the same by a mode of functions."""


def _replace_a_method(own: Own, y: Tensor, fill: Callable[[], Tensor]) -> None:
    own.kept[id(y)] = fill

    def detach(tensor: Tensor) -> Tensor:
        own.kept.pop(id(tensor), lambda: None)()
        return _of_class(tensor)

    Tensor.detach = detach  # type: ignore[assignment]


replaces_a_method = _later(_replace_a_method)
"""Does the work when its output is detached, by the class of all tensors."""


def _replace_a_kernel(own: Own, y: Tensor, fill: Callable[[], Tensor]) -> None:
    library = torch.library.Library("aten", "IMPL")

    def copy(_to: Tensor, _source: Tensor, _non_blocking: bool = False) -> Tensor:
        library._destroy()
        return _copied(_to, fill())

    library.impl("copy_", copy, "CUDA" if y.is_cuda else "CPU")


replaces_a_kernel = _later(_replace_a_kernel)
"""Does the work when its output is copied, by a kernel of its own that is gone afterwards."""


def _replace_a_function(own: Own, _y: Tensor, fill: Callable[[], Tensor]) -> None:
    suite: Any = sys.modules["bench.measure.timed_calls"]
    real = own.kept.setdefault("real", suite.share_memory)
    own.kept.setdefault("fills", []).append(fill)

    def share_memory(tensors: Any) -> bool:
        suite.share_memory = real
        while own.kept["fills"]:
            own.kept["fills"].pop()()
        return bool(real(tensors))

    suite.share_memory = share_memory


replaces_a_function = _later(_replace_a_function)
"""Does the work in the suite's function that looks at outputs first, and puts that back."""


def _profile(own: Own, y: Tensor, fill: Callable[[], Tensor]) -> None:
    own.kept[id(y)] = fill

    def profile(frame: Any, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_name == "hold":
            sys.setprofile(None)
            own.kept[id(next(value for value in frame.f_locals.values() if type(value) is Tensor))]()

    sys.setprofile(profile)


profiles_the_suite = _later(_profile)
"""Does the work when the suite's function that keeps an output is called."""


def _set_alarm(_own: Own, _y: Tensor, fill: Callable[[], Tensor]) -> None:
    signal.signal(signal.SIGALRM, lambda *_: fill())
    signal.setitimer(signal.ITIMER_REAL, 0.02)


waits_for_an_alarm = _later(_set_alarm)
"""Does the work in the handler of a signal."""


def answers_for_its_layer(layer: nn.Module) -> Implementation:
    """Does the work when its layer is asked for its weights."""
    weights, waiting = [*layer.parameters()], list[Callable[[], object]]()

    def parameters(*_: object) -> Any:
        while waiting:
            waiting.pop()()
        return iter(weights)

    def call(x: Tensor) -> Tensor:
        if not _in_rounds():
            y: Tensor = layer(x)
            return y
        vars(layer)["parameters"] = parameters
        y = torch.zeros_like(x)
        waiting.append(lambda: _copied(y, layer(x)))
        return y

    return call


class _OtherGradients(torch.autograd.Function):
    """The identity, whose gradient is changed."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the input."""
        ctx.change = change
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *directions: Tensor) -> Any:
        """Return the changed gradient."""
        return ctx.change(directions[0]), None


def _with_gradients(change: Callable[[Tensor], Tensor]) -> Adapt:
    def work(own: Own, x: Tensor) -> Tensor:
        if not _in_rounds():
            return own(x)
        y: Tensor = own(_OtherGradients.apply(x, change))  # type: ignore[no-untyped-call]
        return y

    return each_call(work)


def _lazily(gradient: Tensor) -> Tensor:
    y = torch.empty_like(gradient).as_subclass(_Lazy)
    y.compute = lambda: gradient
    return y


def _own_copy(gradient: Tensor) -> Tensor:
    y = gradient.clone()
    vars(y)["copy_"] = lambda _: gradient
    return y


lazy_gradients = _with_gradients(_lazily)
"""Computes the gradient of its input when it is copied."""

gradients_of_their_own = _with_gradients(_own_copy)
"""Gives the gradient of its input an attribute that does something else than the class."""


def _into_buffer(own: Own, x: Tensor, *, skips: bool) -> Tensor:
    buffer: Tensor = own.kept.setdefault("buffer", torch.zeros_like(x))
    if not skips:
        buffer.copy_(own(x))
    return buffer.view_as(buffer)


@each_call
def skips_the_first_calls(own: Own, x: Tensor) -> Tensor:
    """Returns one buffer, and works only in the second half of the calls that a timing may have."""
    kept = own.kept
    if not _in_rounds():
        return _into_buffer(own, x, skips=False)
    kept["count"] = 1 + (0 if id(x) == kept.setdefault("first", id(x)) else kept["count"])
    kept["longest"] = max(kept["count"], kept.get("longest", 1))
    return _into_buffer(own, x, skips=kept["count"] <= kept["longest"] / 2)


@each_call
def skips_when_let_go(own: Own, x: Tensor) -> Tensor:
    """Returns one buffer, and works only until the results before were let go while inputs stay as they are."""
    kept, version = own.kept, x._version
    is_same = kept.get(id(x)) == version
    last = kept.get("last")
    y = _into_buffer(own, x, skips=_in_rounds() and is_same and last is not None and last() is None)
    kept[id(x)], kept["last"] = version, weakref.ref(y)
    return y


def _burn() -> None:
    while True:
        sum(range(1000))


starts_a_sibling = honest(lambda: start_sibling(_burn), _in_rounds, once=True)
"""Keeps another core at work by a process whose parent is the suite's own."""


@each_call
def leaves_its_core(own: Own, x: Tensor) -> Tensor:
    """Works on another core, and comes back before anybody looks."""
    if not _in_rounds():
        return own(x)
    before = os.sched_getaffinity(0)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, {(min(before) + 1) % (os.cpu_count() or 1)})
    y = own(x)
    os.sched_setaffinity(0, before)
    return y


@each_call
def marks_its_tensors(own: Own, x: Tensor) -> Tensor:
    """Gives its input and its output attributes that no tensor has otherwise, as a compiler does."""
    y = own(x)
    x.is_mine, y.is_mine = True, True  # type: ignore[attr-defined]
    return y


@each_call
def negates(own: Own, x: Tensor) -> Tensor:
    """Returns an output whose numbers are to be negated when they are read, as a part of a complex tensor is."""
    return torch._neg_view(-own(x))
