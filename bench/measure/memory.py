"""The memory of a call as torch's allocator counts it, and the bytes that stay held."""

import ctypes
import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, UntypedStorage
from torch._subclasses import FakeTensor
from torch.autograd.profiler import profile
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from bench.machine import facts
from bench.measure import clock

SPARE = 2
"""A block is touched only if this many blocks of its size fit into free memory."""


def saved_bytes(forward: Callable[[], object], held: Iterable[Tensor]) -> int:
    """Return the bytes that autograd keeps for backward, each storage counted once, without the storages of `held`.

    `held` are the tensors that live independently of the call: the input and the weights.
    """
    storages: dict[int, UntypedStorage] = {}  # kept alive until the end, so that no address is reused
    own = {tensor.untyped_storage().data_ptr() for tensor in held}

    def pack(tensor: Tensor) -> Tensor:
        for storage in (each.untyped_storage() for each in _plain(tensor)):
            if storage.data_ptr() not in own:
                storages[storage.data_ptr()] = storage
        return tensor.detach()  # a result in its own graph would never be freed

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        forward()
    return sum(storage.nbytes() for storage in storages.values())


def _plain(tensor: Tensor) -> Iterator[Tensor]:
    """Yield the plain tensors inside a wrapper subclass, such as a nested tensor; else the tensor itself."""
    if not is_traceable_wrapper_subclass(tensor):
        yield tensor
        return
    for name in tensor.__tensor_flatten__()[0]:
        yield from _plain(getattr(tensor, name))


def held_bytes(others: Iterable[Tensor]) -> int:
    """Return the bytes of all tensors that Python holds in this process, each storage once, without `others`."""
    ours = {tensor.untyped_storage().data_ptr() for tensor in others}
    gc.collect()
    every, storages = gc.get_objects(), dict[int, int]()
    kinds = {kind for kind in {*map(type, every)} if issubclass(kind, Tensor) and not issubclass(kind, FakeTensor)}
    for tensor in (each for each in every if type(each) in kinds):
        try:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in ours:
                storages[storage.data_ptr()] = storage.nbytes()
        except (RuntimeError, NotImplementedError):  # a sparse tensor, for example, has no storage
            continue
    return sum(storages.values())


def peak_of_events(events: list[tuple[int, int]], frees_earlier: bool = False) -> int:
    """Return the highest sum of live bytes of allocator events `(address, size)`; a negative size frees the block.

    Freeing a block that was allocated before the first event has no effect, unless `frees_earlier`.
    """
    live: dict[int, int] = {}
    current = peak = 0
    for address, size in events:
        if size > 0:
            live[address] = size
            current += size
            peak = max(peak, current)
        else:
            current -= live.pop(address, -size if frees_earlier else 0)
    return peak


def peak_bytes(call: clock.Call) -> int:
    """Return the peak bytes that one call on the CPU allocates in this thread."""
    clock.prepare(call, 1)
    with profile(profile_memory=True, use_kineto=True) as profiler:
        call()
    tree = profiler.kineto_results.experimental_event_tree()
    events = sorted((each for each in _walk(tree) if each.name == "[memory]"), key=lambda each: each.start_time_ns)
    frees_earlier = hasattr(call, "prepare")  # a backward pass frees blocks that its forward pass kept
    return peak_of_events([(each.extra_fields.ptr, each.extra_fields.alloc_size) for each in events], frees_earlier)


def _walk(events: Iterable[Any]) -> Iterator[Any]:
    for event in events:
        yield event
        yield from _walk(event.children)


def give_back() -> None:
    """Release freed memory to the system and the GPU, even if the allocator is configured to retain it."""
    gc.collect()
    torch.cuda.empty_cache()  # no effect if no GPU was used
    if sys.platform == "linux" and hasattr(ctypes.CDLL(None), "malloc_trim"):
        ctypes.CDLL(None).malloc_trim(0)


def touch(size: int) -> None:
    """Write and free a block of this size, if memory allows, so that the allocator keeps its pages for later calls."""
    if 0 < SPARE * size < facts.available_bytes():
        torch.empty(size, dtype=torch.uint8).fill_(0)
