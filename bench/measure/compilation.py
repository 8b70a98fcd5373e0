"""The effects of torch.compile: graphs, recompilations, and the toolchain's first use.

Importing the compiler takes longer than importing torch, so it is imported only if an implementation compiles.
"""

import functools
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress

import torch

from bench.machine import facts

CACHE = "TORCHINDUCTOR_CACHE_DIR"
"""The environment variable with the folder of the compiler's cache."""


def name_kernels() -> None:
    """Make Inductor report its CPU kernels to the profiler by name, as it does on a GPU.

    Use it only for profiles: compiling a kernel takes 2.4 s instead of 0.7 s, and the kernel gets slower.
    """
    import torch._inductor.config

    torch._inductor.config.cpp.enable_kernel_profile = True


def is_used() -> bool:
    """Return whether this process has imported the compiler."""
    return "torch._dynamo" in sys.modules


def graphs() -> tuple[int, int]:
    """Return how many graphs this process has compiled so far, and how many of them came from the cache."""
    if not is_used():
        return 0, 0
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"]), int(counters["inductor"]["fxgraph_cache_hit"])


@contextmanager
def no_eager_fallback() -> Iterator[None]:
    """Make torch.compile raise an error at its limit of recompilations, instead of running eagerly.

    This has no effect if the compiler has not been imported.
    """
    with torch._dynamo.config.patch(fail_on_recompile_limit_hit=True) if is_used() else nullcontext():
        yield


def gave_up(error: Exception) -> bool:
    """Return whether an exception means that torch.compile reached its limit of recompilations."""
    return is_used() and isinstance(error, torch._dynamo.exc.FailOnRecompileLimitHit)


def try_instructions() -> None:
    """Let Inductor test this processor's vector instructions in parallel instead of one by one.

    Inductor compiles and loads a small library for each of ten or more, which takes 12 s on one core without a cache.
    Errors are ignored, because Inductor repeats missing tests later.
    """
    with suppress(Exception), ThreadPoolExecutor(facts.visible_cores()) as threads:
        from torch._inductor import cpu_vec_isa

        flags = cpu_vec_isa.x86_isa_checker()
        named = [each for each in cpu_vec_isa.supported_vec_isa_list if {*str(each).split()} <= {*flags}]
        [*threads.map(bool, named)]


@functools.cache
def warm_toolchain(device: str) -> None:
    """Compile a small function, so that no case pays for the toolchain's first use.

    Raises the errors of torch.compile.
    """

    @torch.compile(dynamic=False)
    def small(x: torch.Tensor) -> torch.Tensor:
        return (x + 1).softmax(dim=-1)

    with torch.inference_mode():
        small(torch.zeros(8, 8, device=device))


@contextmanager
def frozen() -> Iterator[None]:
    """Raise an error at any recompilation inside, so that no timing includes one."""
    with torch.compiler.set_stance("fail_on_recompile") if is_used() else nullcontext():
        yield
