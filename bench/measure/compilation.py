"""The effects of torch.compile: graphs, recompilations, and the toolchain's first use.

Importing the compiler takes longer than importing torch, so it is imported only if an implementation compiles.
"""

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import torch

NO_COMPILER = (
    "No working C++ compiler",
    "Failed to find C compiler",
    "Cannot find a working triton installation",
    "too old to be supported by the triton GPU compiler",
)
"""The texts in which Inductor and Triton say that the machine has no compiler."""


def name_kernels() -> None:
    """Make Inductor report its CPU kernels to the profiler by name, as it does on a GPU.

    Only for profiles: compilation of a kernel was seen to take 2.4 s instead of 0.7 s, and the kernel gets slower.
    """
    import torch._inductor.config

    torch._inductor.config.cpp.enable_kernel_profile = True


def is_used() -> bool:
    """Return whether this process has imported the compiler."""
    return "torch._dynamo" in sys.modules


def graphs() -> int:
    """Return the number of graphs that this process has compiled so far."""
    if not is_used():
        return 0
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])


def cached_graphs() -> int:
    """Return the number of graphs that this process took from the compiler's cache."""
    if not is_used():
        return 0
    from torch._dynamo.utils import counters

    return int(counters["inductor"]["fxgraph_cache_hit"])


@contextmanager
def no_eager_fallback() -> Iterator[None]:
    """Raise an error if torch.compile reaches its limit of recompilations inside, instead of running eagerly.

    This has no effect if the compiler was not imported before.
    """
    if not is_used():
        yield
        return
    import torch._dynamo.config

    with torch._dynamo.config.patch(fail_on_recompile_limit_hit=True):
        yield


def gave_up(error: Exception) -> bool:
    """Return whether an exception means that torch.compile reached its limit of recompilations."""
    if not is_used():
        return False
    from torch._dynamo.exc import FailOnRecompileLimitHit

    return isinstance(error, FailOnRecompileLimitHit)


def is_missing(message: str) -> bool:
    """Return whether an error's message says that there is no compiler."""
    return any(text in message for text in NO_COMPILER)


@functools.cache
def warm_toolchain(device: str) -> None:
    """Compile a small function, so that no case pays for the first use of the toolchain.

    Raises the errors of torch.compile.
    """

    def small(x: torch.Tensor) -> torch.Tensor:
        return (x + 1).softmax(dim=-1)

    compiled: Callable[[torch.Tensor], torch.Tensor] = torch.compile(small, dynamic=False)
    with torch.inference_mode():
        compiled(torch.zeros(8, 8, device=device))


@contextmanager
def frozen() -> Iterator[None]:
    """Raise an error at any recompilation inside, so that no timing includes one."""
    with torch.compiler.set_stance("fail_on_recompile") if is_used() else nullcontext():
        yield
