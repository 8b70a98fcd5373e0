"""The state that all code in a process shares: it is read, compared, and restored.

All implementations of a point run in one process. If one changes this state, it changes the results or the times of the
others. So the state is compared after each step of an implementation and after each of its samples.
"""

import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn import attention
from torch.nn import functional as F  # noqa: N812 - PyTorch's own convention

ABSENT = "nothing"
"""The value of something that doesn't exist, such as an environment variable that is not set."""

MIXED = "mixed"
"""The value of the float32 matmul precision if torch refuses to return it."""

PRECISIONS = (
    ("generic", "all"),
    *((backend, part) for backend in ("cuda", "mkldnn") for part in ("all", "conv", "matmul", "rnn")),
)
"""Backends and operations whose float32 precision can be set; those from which others inherit come first."""

SIGNALS = ("SIGALRM", "SIGVTALRM", "SIGPROF", "SIGINT", "SIGTERM", "SIGCHLD", "SIGUSR1", "SIGUSR2")

TIMERS = ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF")

DYNAMO = ("recompile_limit", "accumulated_recompile_limit", "suppress_errors", "disable")
"""The settings of torch.compile that decide whether code for compilation is really compiled."""

FUNCTIONS: tuple[tuple[Any, str], ...] = (
    *((time, name) for name in ("perf_counter", "perf_counter_ns", "monotonic", "process_time", "time")),
    (torch.cuda, "synchronize"),
    (torch.cuda.Event, "record"),
    (torch.cuda.Event, "elapsed_time"),
    (F, "scaled_dot_product_attention"),
    (F, "linear"),
    (F, "softmax"),
    (torch, "matmul"),
    (torch, "softmax"),
)
"""Clocks, and functions of torch that implementations share: a patch of one is a patch for all of them."""

OF_TORCH = (b"TORCHINDUCTOR_", b"_TORCHINDUCTOR_", b"TORCH_", b"TRITON_", b"KINETO_", b"CUDA_MODULE_LOADING")
"""The prefixes of environment variables that torch itself sets when it compiles or profiles."""

ANY = (b"",)
"""The prefix of all variables."""

_SMALLEST, _HALF = sys.float_info.min, 0.5
"""Their product is a denormal, and 0 if denormals are flushed."""


class LeftChanged(Exception):  # noqa: N818 - an outcome that becomes a row
    """The state of the process was left changed; the message lists the changes."""


@dataclass(frozen=True)
class Part:
    """A part of the state: `read` returns its values by name, `write` restores one of them.

    `write` is None if the values can't be restored. `kind` comes before each name in messages.
    """

    read: Callable[[], dict[Any, Any]]
    write: Callable[[Any, Any], object] | None
    kind: str = ""


class State:
    """The state of the process when this object was made."""

    def __init__(self) -> None:
        self._before = [part.read() for part in PARTS]

    def restore(self, free: tuple[bytes, ...] = OF_TORCH) -> str:
        """Undo all changes since then, and return a text that lists them; empty if there are none.

        New environment variables with a prefix in `free` stay and are no change.
        """
        changes = self._undo(free)
        if changes:
            self._undo(free)  # restoring one part may have changed another
        return "left " + "; ".join(changes) if changes else ""

    def _undo(self, free: tuple[bytes, ...]) -> list[str]:
        changes: list[str] = []
        now = [part.read() for part in PARTS]
        for part, before, after in zip(PARTS, self._before, now, strict=True):
            if after != before:
                changes += _restored(part, before, after, free)
        return changes


@contextmanager
def kept(state: State | None = None) -> Iterator[None]:
    """Restore at the end the state from the beginning, or from when `state` was made.

    Raises LeftChanged if something was changed, unless another exception is being raised.
    """
    state = state or State()
    try:
        yield
    except BaseException:
        state.restore()
        raise
    changed = state.restore()
    if changed:
        raise LeftChanged(changed)


def _restored(part: Part, before: dict[Any, Any], after: dict[Any, Any], free: tuple[bytes, ...]) -> Iterator[str]:
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name, ABSENT), after.get(name, ABSENT)
        if old == new or (old is ABSENT and isinstance(name, bytes) and name.startswith(free)):
            continue
        if part.write is not None:
            part.write(name, old)
        remark = "" if part.write is not None else ", which can't be undone in this process"
        yield f"{part.kind}{_text(name)} changed: {_text(new)} instead of {_text(old)}{remark}"


def _text(value: Any) -> str:
    return os.fsdecode(value) if isinstance(value, bytes) else getattr(value, "__qualname__", str(value))


def _single(name: str, read: Callable[[], Any], write: Callable[[Any], object] | None) -> Part:
    """Return a part with one value."""
    return Part(lambda: {name: read()}, None if write is None else lambda _name, value: write(value))


def _attributes(path: str, owner: Any, *names: str) -> Part:
    """Return a part whose values are attributes of a module, in which torch keeps flags."""
    return Part(
        lambda: {f"{path}.{name}": getattr(owner, name) for name in names},
        lambda name, value: setattr(owner, name.rpartition(".")[2], value),
    )


_entered: list[Any] = []
"""Modes that were entered to restore one; they must stay entered."""


def _enter_inference_mode(enabled: bool) -> None:
    mode = torch.inference_mode(enabled)
    mode.__enter__()
    _entered.append(mode)


def _default_device() -> str | None:
    """Return the default device, None if none was set; a default device slows every call of torch."""
    return str(torch.get_default_device()) if torch._C._len_torch_function_stack() else None


def _deterministic() -> tuple[bool, bool]:
    return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()


def _matmul_precision() -> str:
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # torch's two ways to set it were mixed; `_precisions` reads those of the new way
        return MIXED


def _set_matmul_precision(precision: str) -> None:
    if precision != MIXED:
        torch.set_float32_matmul_precision(precision)


def _precisions() -> dict[str, Any]:
    return {
        f"{backend}.{operation}": torch._C._get_fp32_precision_getter(backend, operation)
        for backend, operation in PRECISIONS
    }


def _set_precision(name: str, precision: str) -> None:
    backend, _, operation = name.partition(".")
    torch._C._set_fp32_precision_setter(backend, operation, precision)


def _activate_flash_attention(implementation: str | None) -> None:
    if implementation is None:
        attention.restore_flash_attention_impl()
    else:
        attention.activate_flash_attention_impl(implementation)


def _autocast() -> dict[str, Any]:
    return {kind: torch.is_autocast_enabled(kind) for kind in ("cpu", "cuda")}


def _dynamo() -> dict[str, Any]:
    """Return the settings that aren't at their default, so that importing the compiler changes nothing."""
    if "torch._dynamo" not in sys.modules:
        return {}
    from torch._dynamo import config

    defaults = config._config  # type: ignore[attr-defined]  # an attribute of the object that stands for the module
    values = {name: getattr(config, name) for name in DYNAMO}
    return {name: value for name, value in values.items() if value != defaults[name].default}


def _set_dynamo(name: str, value: Any) -> None:
    from torch._dynamo import config

    defaults = config._config  # type: ignore[attr-defined]
    setattr(config, name, defaults[name].default if value is ABSENT else value)


def _functions() -> dict[str, Any]:
    return {f"{owner.__name__}.{name}": getattr(owner, name) for owner, name in FUNCTIONS}


def _set_function(path: str, function: Any) -> None:
    owner, name = next(pair for pair in FUNCTIONS if f"{pair[0].__name__}.{pair[1]}" == path)
    setattr(owner, name, function)


def _environment() -> dict[bytes, bytes]:
    # as bytes: this is read after each sample, and decoding takes longer than all other parts together
    return dict(os.environ._data)  # type: ignore[attr-defined]


def _set_variable(name: bytes, value: Any) -> None:
    if value is ABSENT:
        del os.environb[name]
    else:
        os.environb[name] = value


def _working_directory() -> str | None:
    with suppress(FileNotFoundError):  # it was removed
        return str(Path.cwd())
    return None


def _change_directory(folder: str | None) -> None:
    if folder is not None:
        os.chdir(folder)


def _handlers() -> dict[str, Any]:
    return {name: signal.getsignal(getattr(signal, name)) for name in SIGNALS}


def _set_handler(name: str, handler: Any) -> None:
    if handler is not None:  # None means that C code installed the handler
        signal.signal(getattr(signal, name), handler)


def _timers() -> dict[str, str]:
    return {name: "pending" for name in TIMERS if signal.getitimer(getattr(signal, name)) != (0.0, 0.0)}


def _stop_timer(name: str, _pending: Any) -> None:
    signal.setitimer(getattr(signal, name), 0.0)


def _collect_garbage(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()


PARTS: tuple[Part, ...] = (
    _single("the default device", _default_device, torch.set_default_device),
    _single("the default dtype", torch.get_default_dtype, torch.set_default_dtype),
    _single("torch's threads", torch.get_num_threads, torch.set_num_threads),
    _single("torch's interop threads", torch.get_num_interop_threads, None),
    _single("flush_denormal", lambda: _SMALLEST * _HALF == 0.0, torch.set_flush_denormal),
    _single("the gradient mode", torch.is_grad_enabled, torch.set_grad_enabled),
    _single("the inference mode", torch.is_inference_mode_enabled, _enter_inference_mode),
    _single("anomaly detection", torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
    _single(
        "deterministic algorithms",
        _deterministic,
        lambda mode: torch.use_deterministic_algorithms(mode[0], warn_only=mode[1]),
    ),
    Part(_autocast, torch.set_autocast_enabled, "autocast on "),
    _single("the float32 matmul precision", _matmul_precision, _set_matmul_precision),
    Part(_precisions, _set_precision, "the float32 precision of "),
    _single("flash_sdp", torch.backends.cuda.flash_sdp_enabled, torch.backends.cuda.enable_flash_sdp),
    _single(
        "mem_efficient_sdp",
        torch.backends.cuda.mem_efficient_sdp_enabled,
        torch.backends.cuda.enable_mem_efficient_sdp,
    ),
    _single("math_sdp", torch.backends.cuda.math_sdp_enabled, torch.backends.cuda.enable_math_sdp),
    _single("cudnn_sdp", torch.backends.cuda.cudnn_sdp_enabled, torch.backends.cuda.enable_cudnn_sdp),
    _single(
        "the reduced precision of math_sdp",
        torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed,
        torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp,
    ),
    _single("the order of sdp backends", torch._C._get_sdp_priority_order, torch._C._set_sdp_priority_order),
    _single("the flash attention", attention.current_flash_attention_impl, _activate_flash_attention),
    _single(
        "the fast path of MultiheadAttention",
        torch.backends.mha.get_fastpath_enabled,
        torch.backends.mha.set_fastpath_enabled,
    ),
    _attributes(
        "torch.backends.cuda.matmul",
        torch.backends.cuda.matmul,
        "allow_fp16_reduced_precision_reduction",
        "allow_bf16_reduced_precision_reduction",
    ),
    _attributes("torch.backends.cudnn", torch.backends.cudnn, "enabled", "benchmark", "deterministic"),
    _attributes("torch.backends.mkldnn", torch.backends.mkldnn, "enabled"),
    Part(_dynamo, _set_dynamo, "torch._dynamo.config."),
    Part(_functions, _set_function),
    Part(_environment, _set_variable, "the environment variable "),
    _single("the working directory", _working_directory, _change_directory),
    Part(_handlers, _set_handler, "the handler of "),
    Part(_timers, _stop_timer, "the timer "),
    _single("the trace function", sys.gettrace, sys.settrace),
    _single("the profile function", sys.getprofile, sys.setprofile),
    _single("garbage collection", gc.isenabled, _collect_garbage),
    _single("the thresholds of garbage collection", gc.get_threshold, lambda thresholds: gc.set_threshold(*thresholds)),
    *(
        [_single("the cores to run on", lambda: os.sched_getaffinity(0), lambda cores: os.sched_setaffinity(0, cores))]
        if hasattr(os, "sched_setaffinity")
        else []
    ),
)
"""All parts that are compared. Random generators are not among them: an implementation may draw random numbers."""
