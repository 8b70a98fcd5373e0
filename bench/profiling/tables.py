"""The operators and stages of profiled calls, as means over them, with the operations that torch counts; kernels."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from inspect import unwrap
from typing import Any

import torch
from torch.autograd.profiler_util import FunctionEvent
from torch.utils import flop_counter
from torch.utils.flop_counter import FlopCounterMode

from bench.analyse.rows import grouped
from bench.measure.inspection import MICROSECOND_S
from bench.measure.recorded import Call, Place, around, is_label, name
from bench.plan.case import Point
from bench.plan.device import Kind
from bench.profiling.capture import Pair
from bench.store.profile import BACKWARD, FORWARD, STREAM, Kernel, ProfiledOperator, Stage

ON_CPUS = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: unwrap(flop_counter.sdpa_flop),
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: unwrap(flop_counter.sdpa_backward_flop),
}
"""The formulas of kernels that torch's counter has for GPUs alone."""

COUNTED = {f"aten::{each.__name__}": each for each in (*flop_counter.flop_registry, *ON_CPUS)}
"""The operators whose operations are known, by their names in a profile."""

LINE = " | "
"""What stands in a label between the name of a stage and the line of source."""

KINDS = ("conv", "attention")
"""What stands in the names of operators that hand their work on to another of the same kind."""


def operators(pairs: Sequence[Pair], kind: Kind) -> tuple[ProfiledOperator, ...]:
    """Return the operators of the profiled calls, and events such as the entry into compiled code, longest first.

    On a GPU the time of their kernels orders them.
    """
    events = ((event, pair) for pair in pairs for event in pair.call.host if not is_label(event))
    flops, unit_s = _flops(pair.call for pair in pairs), MICROSECOND_S / len(pairs)
    means = []
    for (operator, line), group in grouped(events, lambda each: (name(each[0]), _line(*each))).items():
        kernels = [kernel for event, _ in group for kernel in event.kernels]
        device_s = sum(kernel.duration for kernel in kernels) * unit_s
        means.append(
            ProfiledOperator(
                operator,
                calls=len(group) / len(pairs),
                self_s=sum(event.self_cpu_time_total for event, _ in group) * unit_s,
                allocated_bytes=sum(pair.allocated[event] for event, pair in group) / len(pairs),
                device_s=None if kind.is_timed_by_host else device_s,
                flops=sum(flops[event] for event, _ in group) / len(pairs) or None,
                kernels=tuple(dict.fromkeys(kernel.name for kernel in kernels)),
                line=line,
            )
        )
    return tuple(sorted(means, key=lambda operator: -operator.time_s))


def _line(event: FunctionEvent, pair: Pair) -> str:
    place = pair.call.places.get(event)
    return place.label.partition(LINE)[2] if place else ""


def stages(pairs: Sequence[Pair], point: Point) -> tuple[Stage, ...]:
    """Return the stages of the profiled calls in the order in which they begin, forward and backward."""
    events = [(event, place, pair) for pair in pairs for event, place in pair.call.places.items()]
    flops = _flops(pair.call for pair in pairs)
    return tuple(
        Stage(
            stage,
            direction,
            time_s=sum(pair.call.part_s(event, point.kind) for event, _, pair in group) / len(pairs),
            allocated_bytes=sum(pair.allocated[event] for event, _, pair in group) / len(pairs),
            flops=sum(flops[event] for event, *_ in group) / len(pairs) or None,
        )
        for (stage, direction), group in grouped(events, lambda each: _stage(each[1])).items()
    )


def _stage(place: Place) -> tuple[str, str]:
    return place.label.partition(LINE)[0], BACKWARD if place.is_backward else FORWARD


def kernels(call: Call) -> tuple[Kernel, ...]:
    """Return the kernels and copies that a GPU ran for a call."""
    begin_us = call.whole.time_range.start
    return tuple(
        Kernel(
            event.name,
            f"{STREAM}{event.device_resource_id}",
            (event.time_range.start - begin_us) * MICROSECOND_S,
            event.time_range.elapsed_us() * MICROSECOND_S,
        )
        for event in call.device
    )


def _flops(calls: Iterable[Call]) -> Counter[FunctionEvent]:
    """Return the operations of the events that do them: of nested ones the outermost is counted."""
    flops = Counter[FunctionEvent]()
    for event in (event for call in calls for event in call.host if event.name in COUNTED):
        if not any(each.name in COUNTED for each in around(event.cpu_parent)):
            flops[_worker(event)] += operations(event)
    return flops


def _worker(event: FunctionEvent) -> FunctionEvent:
    """Return the operator to which an operator hands its work on, as a convolution does to one of its backends."""
    kind = next((kind for kind in KINDS if kind in event.name), None)
    inner = next((child for child in event.cpu_children if kind and kind in child.name), None)
    return _worker(inner) if inner else event


def operations(event: FunctionEvent) -> int:
    """Return the floating-point operations of an event in COUNTED, as torch counts them from the shapes of its inputs.

    They are 0 if shapes alone don't say enough.
    """
    shapes, values = map(_frozen, (event.input_shapes, event.concrete_inputs))
    return _operations(event.name, shapes, values)


def _frozen(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(_frozen(each) if isinstance(each, list) else each for each in values)


@cache
def _operations(name: str, shapes: tuple[Any, ...], values: tuple[Any, ...]) -> int:
    operator = COUNTED[name].default
    arguments = (each for each in operator._schema.arguments if not each.kwarg_only)
    inputs = [
        torch.empty(shape, device="meta") if shape or argument.type == torch.TensorType.get() else value
        for argument, shape, value in zip(arguments, shapes, values, strict=False)
    ]
    try:
        with FlopCounterMode(display=False, custom_mapping=ON_CPUS) as counter:
            operator(*inputs)
    except Exception:  # as for products in float8, whose inputs are not of the usual dtype
        return 0
    return int(counter.get_total_flops())
