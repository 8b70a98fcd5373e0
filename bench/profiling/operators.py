"""The time, memory and FLOPs of each operator in a call, as means over several calls."""

from collections import defaultdict
from collections.abc import Sequence

from torch.autograd.profiler_util import FunctionEvent

from bench.profiling.pairs import Pair
from bench.profiling.recorded import MICROSECOND_S, is_label, name
from bench.store.profile import Operator


def operators(pairs: Sequence[Pair], device: str) -> tuple[Operator, ...]:
    """Return the operators of the profiled calls, and events such as the entry into compiled code, longest first."""
    events: dict[str, list[FunctionEvent]] = defaultdict(list)
    for event in (each for pair in pairs for each in pair.call.host if not is_label(each)):
        events[name(event)].append(event)
    self_times = {key: sum(each.self_cpu_time_total for each in group) for key, group in events.items()}
    flops: dict[str, int] = defaultdict(int)
    for event in (each for group in events.values() for each in group if each.flops):
        flops[max(_names(event), key=lambda key: self_times.get(key, 0))] += event.flops or 0
    sizes: dict[str, int] = defaultdict(int)
    for block in (each.block for pair in pairs for each in pair.blocks):
        sizes[block.operator] += block.bytes
    means = [_operator(key, group, sizes[key], flops[key], len(pairs), device) for key, group in events.items()]
    return tuple(sorted(means, key=lambda operator: -(operator.device_s or operator.self_s)))


def _names(event: FunctionEvent) -> list[str]:
    """Return the name of this event, then the names of those inside it.

    torch counts the operations of a convolution at its outermost event, which hardly takes any time. They belong to
    the operator of these names that takes the most time over all calls, so that one slow event can't move them.
    """
    inside = [_names(child) for child in event.cpu_children if not is_label(child)]
    return [name(event), *(each for names in inside for each in names)]


def _operator(name: str, events: Sequence[FunctionEvent], size: int, flops: int, calls: int, device: str) -> Operator:
    kernels = [kernel for event in events for kernel in event.kernels]
    device_s = sum(kernel.duration for kernel in kernels) * MICROSECOND_S / calls
    return Operator(
        name,
        calls=len(events) / calls,
        self_s=sum(event.self_cpu_time_total for event in events) * MICROSECOND_S / calls,
        allocated_bytes=size / calls,
        device_s=None if device == "cpu" else device_s,
        flops=flops / calls if flops else None,
        kernels=tuple(dict.fromkeys(kernel.name for kernel in kernels)),
    )
