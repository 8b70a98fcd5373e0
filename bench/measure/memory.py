"""The memory of one call: its peak, and the bytes that autograd keeps for the backward pass."""

import gc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, UntypedStorage
from torch._subclasses import FakeTensor
from torch.profiler import profile


@dataclass(frozen=True)
class Memory:
    """The bytes that one call needs in addition to those held before; `reserved_bytes` is None on a CPU."""

    peak_bytes: int
    reserved_bytes: int | None = None


def saved_bytes(forward: Callable[[], object], held: Iterator[Tensor]) -> int:
    """Return the bytes that autograd keeps for backward, each storage counted once, without those of `held`.

    `held` are the tensors that live independently of the call: the input and the weights.
    """
    storages: dict[int, UntypedStorage] = {}  # which live until the count is complete, so that no address is reused
    own = {tensor.untyped_storage().data_ptr() for tensor in held}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            storages[storage.data_ptr()] = storage
        return tensor.detach()  # a result that its own graph keeps would never be freed

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        forward()
    return sum(storage.nbytes() for storage in storages.values())


def held_bytes(known: Iterable[Tensor]) -> int:
    """Return the bytes of the tensors that Python code of this process keeps, each storage once, without the known."""
    ours = {tensor.untyped_storage().data_ptr() for tensor in known}
    gc.collect()
    storages: dict[int, int] = {}
    for tensor in gc.get_objects():
        if not issubclass(type(tensor), Tensor) or isinstance(tensor, FakeTensor):
            continue
        try:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in ours:
                storages[storage.data_ptr()] = storage.nbytes()
        except (RuntimeError, NotImplementedError):  # it has no memory of this kind, as a sparse one
            continue
    return sum(storages.values())


def peak_of_events(events: list[tuple[int, int]]) -> int:
    """Return the highest sum of live bytes of allocator events `(address, size)`; a negative size frees the block.

    Freeing a block that was allocated before the first event has no effect.
    """
    live: dict[int, int] = {}
    current = peak = 0
    for address, size in events:
        if size > 0:
            live[address] = size
            current += size
            peak = max(peak, current)
        else:
            current -= live.pop(address, 0)
    return peak


def of_profile(profiler: profile) -> Memory:
    """Return the memory of the calls on the CPU in a profile that recorded memory, exact to the byte."""
    fields = [event.extra_fields for event in allocations(profiler)]
    return Memory(peak_of_events([(each.ptr, each.alloc_size) for each in fields]))


def on_cuda(call: Callable[[], object], device: str) -> Memory:
    """Return the memory of one call on a GPU, as its caching allocator counts it after its cache was emptied."""
    gc.collect()
    torch.cuda.synchronize(device)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    held, reserved = torch.cuda.memory_allocated(device), torch.cuda.memory_reserved(device)
    call()
    torch.cuda.synchronize(device)
    return Memory(
        peak_bytes=torch.cuda.max_memory_allocated(device) - held,
        reserved_bytes=max(0, torch.cuda.max_memory_reserved(device) - reserved),
    )


def allocations(profiler: profile) -> list[Any]:
    """Return the allocator's events in a profile that recorded memory, ordered by time.

    They are nodes of the profiler's tree of events: `parent` is the event that ran when the allocator was called.
    """
    tree = profiler.profiler.kineto_results.experimental_event_tree()  # type: ignore[union-attr]
    return sorted((event for event in _walk(tree) if event.name == "[memory]"), key=lambda event: event.start_time_ns)


def _walk(events: list[Any]) -> Iterator[Any]:
    stack = list(reversed(events))
    while stack:
        event = stack.pop()
        yield event
        stack.extend(reversed(event.children))
