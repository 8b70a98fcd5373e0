"""The state that all code in a process shares, which an implementation must leave as it was.

A change alters what is measured: more threads, another precision, another clock. So the state is compared after each
step of an implementation and after each of its samples. Nothing is restored: the process ends with its case.
"""

import _signal  # type: ignore[import-not-found]
import gc
import operator
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from torch.nn import attention
from torch.nn import functional as F  # noqa: N812 - PyTorch's own convention

from bench.measure import clock, cuda

ABSENT = "nothing"
"""The value of something that doesn't exist, such as an environment variable that is not set."""

PRECISIONS = (
    ("generic", "all"),
    *((backend, part) for backend in ("cuda", "mkldnn") for part in ("all", "conv", "matmul", "rnn")),
)
"""Backends and operations whose float32 precision can be set."""

SIGNALS = ("SIGALRM", "SIGVTALRM", "SIGPROF", "SIGINT", "SIGTERM", "SIGCHLD", "SIGUSR1", "SIGUSR2")

OF_TENSORS = frozenset(dir(torch.Tensor))
"""What a tensor has."""

OPERATORS = ("aten::copy_", "aten::detach", "aten::mul.out")
"""Operators with which inputs are written and outputs kept."""

TIMERS = ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF")

DYNAMO = ("recompile_limit", "accumulated_recompile_limit", "suppress_errors", "disable")
"""The settings of torch.compile that decide whether code for compilation is really compiled."""

OF_TIMER: tuple[tuple[Any, str], ...] = (
    *((cuda, name) for name in ("perf_counter", "synchronize", "current_device", "Event")),
    *((cuda, name) for name in ("_sleep", "_record", "_query", "_elapsed_ms", "_wait")),
)
"""The functions of a GPU's timer."""

FUNCTIONS: tuple[tuple[Any, str], ...] = (
    *((time, name) for name in ("perf_counter", "perf_counter_ns", "monotonic", "process_time", "time")),
    *((random.Random, name) for name in ("random", "choice", "sample", "shuffle", "randrange", "getrandbits")),
    (os, "urandom"),
    (clock, "perf_counter"),
    *((torch.cuda, name) for name in ("synchronize", "current_stream", "current_device")),
    *((torch.cuda.Event, name) for name in ("__bases__", "record", "query", "synchronize", "elapsed_time")),
    (torch.Tensor, "copy_"),
    (F, "scaled_dot_product_attention"),
    (F, "linear"),
    (F, "softmax"),
    (torch, "equal"),
    (torch, "matmul"),
    (torch, "softmax"),
)
"""Clocks, and functions of torch that the measurement uses: a patch of one would change what it says."""

OF_LIBRARIES = (b"TORCHINDUCTOR_", b"_TORCHINDUCTOR_", b"TORCH_", b"TRITON_", b"KINETO_", b"CUDA_MODULE_LOADING")
"""The prefixes of environment variables that torch sets when it compiles or profiles."""

ANY = (b"",)
"""The prefix of all variables."""

PLAIN = (bool, int, float, str, bytes, tuple, list, set)
"""The types of values that are read anew each time."""

_SMALLEST, _HALF = sys.float_info.min, 0.5
"""Their product is a denormal, and 0 if denormals are flushed."""


class LeftChanged(Exception):  # noqa: N818 - an outcome that becomes a row
    """The state of the process was left changed; the message lists the changes."""


Parts = Sequence[tuple[str, Callable[[], dict[Any, Any]]]]
"""Parts of the state, each with the text before its names in messages."""


class ProcessState:
    """The state of the process when this object was made, or some parts of it."""

    def __init__(self, parts: Parts | None = None) -> None:
        self._parts = STATE_PARTS if parts is None else parts
        self._before = [read() for _, read in self._parts]

    def changes(self, free: tuple[bytes, ...] = OF_LIBRARIES) -> str:
        """Return a text that lists all changes since then, empty if there are none.

        New environment variables with a prefix in `free` are no change.
        """
        now = [read() for _, read in self._parts]
        changes: list[str] = []
        for (kind, _), before, after in zip(self._parts, self._before, now, strict=True):
            # all are the same objects nearly always: this is read after each timing
            if [*before] != [*after] or not all(map(operator.is_, before.values(), after.values())):
                changes += (kind + change for change in _differences(before, after, free))
        return "left " + "; ".join(changes) if changes else ""

    def check(self) -> None:
        """Raise LeftChanged if something has changed."""
        if changes := self.changes():
            raise LeftChanged(changes)


@contextmanager
def kept() -> Iterator[None]:
    """Raise LeftChanged at the end if something was changed inside."""
    state = ProcessState()
    yield
    state.check()


def _differences(before: dict[Any, Any], after: dict[Any, Any], free: tuple[bytes, ...]) -> Iterator[str]:
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name, ABSENT), after.get(name, ABSENT)
        if not _is_same(old, new) and not (old is ABSENT and isinstance(name, bytes) and name.startswith(free)):
            yield f"{_text(name)} changed: {_text(new)} instead of {_text(old)}"


def _is_same(old: Any, new: Any) -> bool:
    """Return whether a value is the old one; by `==` for plain types alone: others decide what equals them."""
    return old is new or (type(old) is type(new) and type(old) in PLAIN and bool(old == new))


def _text(value: Any) -> str:
    return os.fsdecode(value) if isinstance(value, bytes) else getattr(value, "__qualname__", str(value))


def _matmul_precision() -> str:
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # torch's two ways to set it were mixed; those of the new way are read beside it
        return "mixed"


def _precision(backend: str, part: str) -> str:
    """Return the precision that holds for a part; `none`, that nobody has chosen one, means `ieee` everywhere."""
    chosen: str = torch._C._get_fp32_precision_getter(backend, part)
    return "ieee" if chosen == "none" else chosen


def _hooks() -> dict[str, Any]:
    """Return whatever may run code of an implementation while it isn't called."""
    return {
        "the trace function": sys.gettrace(),
        "the profile function": sys.getprofile(),
        "the number of function modes": torch._C._len_torch_function_stack(),
        "the number of dispatch modes": torch._C._len_torch_dispatch_stack(),
        "the level of functorch": torch._C._functorch.maybe_current_level(),
        "the hooks of saved tensors": torch._C._autograd._top_saved_tensors_default_hooks(True),
        "the evaluation of frames": torch._C._dynamo.eval_frame.get_eval_frame_callback(),
    }


def _tensor_class() -> dict[str, Any]:
    return {name: value for name, value in vars(torch.Tensor).items() if name in OF_TENSORS}


def _settings() -> dict[str, Any]:
    device_is_set = torch._C._len_torch_function_stack()  # one that is slows every call of torch
    cuda, matmul, cudnn = torch.backends.cuda, torch.backends.cuda.matmul, torch.backends.cudnn
    return {
        "the default device": str(torch.get_default_device()) if device_is_set else None,
        "the default dtype": torch.get_default_dtype(),
        "torch's threads": torch.get_num_threads(),
        "torch's interop threads": torch.get_num_interop_threads(),
        "flush_denormal": _SMALLEST * _HALF == 0.0,
        "the gradient mode": torch.is_grad_enabled(),
        "the inference mode": torch.is_inference_mode_enabled(),
        "anomaly detection": torch.is_anomaly_enabled(),
        "deterministic algorithms": (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        ),
        "autocast on cpu": torch.is_autocast_enabled("cpu"),
        "autocast on cuda": torch.is_autocast_enabled("cuda"),
        "the float32 matmul precision": _matmul_precision(),
        "flash_sdp": cuda.flash_sdp_enabled(),
        "mem_efficient_sdp": cuda.mem_efficient_sdp_enabled(),
        "math_sdp": cuda.math_sdp_enabled(),
        "cudnn_sdp": cuda.cudnn_sdp_enabled(),
        "the reduced precision of math_sdp": cuda.fp16_bf16_reduction_math_sdp_allowed(),
        "the order of sdp backends": torch._C._get_sdp_priority_order(),
        "the flash attention": attention.current_flash_attention_impl(),
        "the fast path of MultiheadAttention": torch.backends.mha.get_fastpath_enabled(),
        "allow_fp16_reduced_precision_reduction": matmul.allow_fp16_reduced_precision_reduction,
        "allow_bf16_reduced_precision_reduction": matmul.allow_bf16_reduced_precision_reduction,
        "cudnn.enabled": cudnn.enabled,
        "cudnn.benchmark": cudnn.benchmark,
        "cudnn.deterministic": cudnn.deterministic,
        "mkldnn.enabled": torch.backends.mkldnn.enabled,
        "the working directory": _working_directory(),
        "garbage collection": gc.isenabled(),
        "the thresholds of garbage collection": gc.get_threshold(),
        "the cores to run on": os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None,
    }


def _dynamo() -> dict[str, Any]:
    """Return the settings that aren't at their default, so that importing the compiler changes nothing."""
    if "torch._dynamo" not in sys.modules:
        return {}
    from torch._dynamo import config

    defaults = config._config  # type: ignore[attr-defined]  # an attribute of the object that stands for the module
    values = {name: getattr(config, name) for name in DYNAMO}
    return {name: value for name, value in values.items() if value != defaults[name].default}


def _working_directory() -> str | None:
    with suppress(FileNotFoundError):  # it was removed
        return str(Path.cwd())
    return None


def _functions(of: Sequence[tuple[Any, str]]) -> dict[str, Any]:
    return {f"{owner.__name__}.{name}": getattr(owner, name) for owner, name in of}


def _of_gpu() -> dict[str, Any]:
    stream, persisting_bytes = cuda.settings() if torch.cuda.is_initialized() else (0, 0)
    return {"the current stream": stream, "the bytes of L2 that may persist": persisting_bytes}


HOOKS: Parts = (
    ("", _hooks),
    ("", lambda: _functions(OF_TIMER)),
    ("torch.Tensor.", _tensor_class),
    ("the number of kernels of ", lambda: {name: torch._C._dispatch_dump(name).count("\n") for name in OPERATORS}),
    ("the timer ", lambda: {name: "pending" for name in TIMERS if any(signal.getitimer(getattr(signal, name)))}),
)
"""What is compared after each timing too, before anything touches a result: it may do work that was put off."""

STATE_PARTS: Parts = (
    ("", _settings),
    *HOOKS,
    ("", lambda: _functions(FUNCTIONS)),
    ("", _of_gpu),
    (
        "the float32 precision of ",
        lambda: {".".join(part): _precision(*part) for part in PRECISIONS},
    ),
    ("torch._dynamo.config.", _dynamo),
    # as bytes: this is read after each sample, and decoding takes longer than all other parts together
    ("the environment variable ", lambda: dict(os.environ._data)),  # type: ignore[attr-defined]
    # signal.getsignal takes a handler that says that it is 0 for SIG_DFL
    ("the handler of ", lambda: {name: _signal.getsignal(getattr(signal, name)) for name in SIGNALS}),
)
"""All parts of the state. Random generators are not among them: an implementation may draw random numbers."""
