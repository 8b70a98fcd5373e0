"""What torch.compile did: graphs, recompilations, and the toolchain's first use.

Importing the compiler takes longer than importing torch, so only those who compile have it imported.
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
"""How Inductor and Triton say that the machine has none."""


def name_kernels() -> None:
    """Have Inductor announce its CPU kernels to the profiler by name, as it does on a GPU.

    For profiles alone: it makes kernels slower to compile (2.4 s instead of 0.7 s for one was seen) and adds to them.
    """
    import torch._inductor.config

    torch._inductor.config.cpp.enable_kernel_profile = True


def is_used() -> bool:
    """Return whether anything in this process has had to do with the compiler."""
    return "torch._dynamo" in sys.modules


def reset() -> None:
    """Forget what was compiled, so that the limit of recompilations, which is per code object, starts anew."""
    if is_used():
        torch.compiler.reset()


def graphs() -> int:
    """Return the number of graphs that this process has compiled so far."""
    if not is_used():
        return 0
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])


def cached_graphs() -> int:
    """Return the number of graphs that this process found in the cache of compiled ones."""
    if not is_used():
        return 0
    from torch._dynamo.utils import counters

    return int(counters["inductor"]["fxgraph_cache_hit"])


@contextmanager
def insisted() -> Iterator[None]:
    """Make it an error inside that torch.compile gives up after too many recompilations and goes on eagerly.

    Nothing holds where nobody has had to do with the compiler before.
    """
    if not is_used():
        yield
        return
    import torch._dynamo.config

    with torch._dynamo.config.patch(fail_on_recompile_limit_hit=True):
        yield


def gave_up(error: Exception) -> bool:
    """Return whether an exception says that torch.compile reached its limit of recompilations."""
    if not is_used():
        return False
    from torch._dynamo.exc import FailOnRecompileLimitHit

    return isinstance(error, FailOnRecompileLimitHit)


def is_missing(said: str) -> bool:
    """Return whether an error's text says that there is no compiler."""
    return any(words in said for words in NO_COMPILER)


@functools.cache
def warm_toolchain(device: str) -> None:
    """Compile a trifle, so that the first use of the toolchain is charged to no case.

    Raises what torch.compile raises where it can't work.
    """

    def trifle(x: torch.Tensor) -> torch.Tensor:
        return (x + 1).softmax(dim=-1)

    compiled: Callable[[torch.Tensor], torch.Tensor] = torch.compile(trifle, dynamic=False)
    with torch.inference_mode():
        compiled(torch.zeros(8, 8, device=device))


@contextmanager
def frozen() -> Iterator[None]:
    """Make any recompilation inside an error, so that no timing holds one."""
    with torch.compiler.set_stance("fail_on_recompile") if is_used() else nullcontext():
        yield
