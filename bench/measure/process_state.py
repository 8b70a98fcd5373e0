"""Process-wide settings that an implementation must leave unchanged.

A change, such as more threads, another precision or another clock, would change the measurement. So settings are
compared after each step of an implementation and after each sample. Nothing is restored, because the process ends.
"""

import gc
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn import attention
from torch.nn import functional as F  # noqa: N812 - PyTorch's own convention

from bench.measure import clock, cuda

ABSENT = "nothing"
"""The value of a setting that doesn't exist."""

PRECISIONS = (
    ("generic", "all"),
    *((backend, part) for backend in ("cuda", "mkldnn") for part in ("all", "conv", "matmul", "rnn")),
)
"""Backends and operations whose float32 precision can be set."""

DYNAMO = ("recompile_limit", "accumulated_recompile_limit", "suppress_errors", "disable")
"""The settings of torch.compile by which it may silently run eagerly."""

FUNCTIONS: tuple[tuple[Any, str], ...] = (
    *((time, name) for name in ("perf_counter", "perf_counter_ns", "monotonic", "process_time", "time")),
    (clock, "perf_counter"),
    *((cuda, name) for name in ("perf_counter", "synchronize", "Event", "_record", "_query", "_elapsed_ms", "_wait")),
    *((torch.cuda, name) for name in ("synchronize", "current_stream")),
    *((torch.cuda.Event, name) for name in ("record", "query", "synchronize", "elapsed_time")),
    *((torch.Tensor, name) for name in ("copy_", "detach")),
    (F, "scaled_dot_product_attention"),
    (torch, "equal"),
)
"""Clocks, and functions of torch that the measurement uses, which must not be patched."""

_SMALLEST, _HALF = sys.float_info.min, 0.5
"""Two factors whose product is a denormal number, or 0 if denormals are flushed."""


class LeftChanged(Exception):  # noqa: N818 - an outcome that becomes a row
    """An implementation left process-wide settings changed; the message lists them."""


class ProcessState:
    """The process-wide settings when this object was made, or the part that `read` returns."""

    def __init__(self, read: Callable[[], dict[str, Any]] | None = None) -> None:
        self._read = read or _read
        self._before = self._read()

    def changes(self) -> str:
        """Return a text with all changes since then; empty if there are none."""
        now = self._read()
        changes = [
            f"{name} changed: {_text(now.get(name, ABSENT))} instead of {_text(self._before.get(name, ABSENT))}"
            for name in dict.fromkeys([*self._before, *now])
            if now.get(name, ABSENT) != self._before.get(name, ABSENT)
        ]
        return "left " + "; ".join(changes) if changes else ""

    def check(self) -> None:
        """Raise LeftChanged if something has changed."""
        if changes := self.changes():
            raise LeftChanged(changes)


@contextmanager
def kept() -> Iterator[None]:
    """Raise LeftChanged at the end of the block if it changed a setting."""
    state = ProcessState()
    yield
    state.check()


def _text(value: Any) -> str:
    return getattr(value, "__qualname__", str(value))


def _matmul_precision() -> str:
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # torch's two ways to set it were mixed; PRECISIONS reads the new one
        return "mixed"


def _precision(backend: str, part: str) -> str:
    """Return the float32 precision of a part; `none`, the value when it isn't set, means `ieee`."""
    chosen: str = torch._C._get_fp32_precision_getter(backend, part)
    return "ieee" if chosen == "none" else chosen


def _settings() -> dict[str, Any]:
    device_is_set = torch._C._len_torch_function_stack()  # a set device slows every call of torch
    cuda, matmul, cudnn = torch.backends.cuda, torch.backends.cuda.matmul, torch.backends.cudnn
    return {
        "the default device": str(torch.get_default_device()) if device_is_set else None,
        "the default dtype": torch.get_default_dtype(),
        "torch's threads": torch.get_num_threads(),
        "torch's interop threads": torch.get_num_interop_threads(),
        "flush_denormal": _SMALLEST * _HALF == 0.0,
        "the gradient mode": torch.is_grad_enabled(),
        "the inference mode": torch.is_inference_mode_enabled(),
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
        "garbage collection": gc.isenabled(),
        "the cores to run on": os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None,
    }


def hooks() -> dict[str, Any]:
    """Return the hooks by which an implementation's code may run while it isn't called."""
    return {
        "the trace function": sys.gettrace(),
        "the profile function": sys.getprofile(),
        "the number of function modes": torch._C._len_torch_function_stack(),
        "the number of dispatch modes": torch._C._len_torch_dispatch_stack(),
        "the level of functorch": torch._C._functorch.maybe_current_level(),
        "the evaluation of frames": torch._C._dynamo.eval_frame.get_eval_frame_callback(),
    }


def _dynamo() -> dict[str, Any]:
    """Return torch.compile's settings that differ from their defaults, so that importing it is no change."""
    if "torch._dynamo" not in sys.modules:
        return {}
    from torch._dynamo import config

    defaults = config._config  # type: ignore[attr-defined]  # an attribute of the object that stands for the module
    values = {name: getattr(config, name) for name in DYNAMO}
    return {f"torch._dynamo.config.{name}": each for name, each in values.items() if each != defaults[name].default}


def _read() -> dict[str, Any]:
    precisions = {f"the float32 precision of {'.'.join(part)}": _precision(*part) for part in PRECISIONS}
    functions = {f"{owner.__name__}.{name}": getattr(owner, name) for owner, name in FUNCTIONS}
    stream = torch.cuda.current_stream().cuda_stream if torch.cuda.is_initialized() else 0
    return {**hooks(), **_settings(), **_dynamo(), **precisions, **functions, "the current stream": stream}
