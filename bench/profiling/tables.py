"""The tables of a profile: operators with their operations, stages, and kernels of a GPU."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from inspect import unwrap

import torch
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import profile
from torch.utils import flop_counter
from torch.utils.flop_counter import FlopCounterMode

from bench.measure.inspection import MICROSECOND_S
from bench.measure.recorded import Call, around, is_label, name
from bench.plan.device import Kind
from bench.store.profile import BACKWARD, FORWARD, STREAM, Kernel, ProfiledOperator, Stage

ON_CPUS = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: unwrap(flop_counter.sdpa_flop),
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: unwrap(flop_counter.sdpa_backward_flop),
}
"""Formulas for CPU operators that torch's counter has only for their GPU counterparts."""

COUNTED = {f"aten::{each.__name__}": each for each in (*flop_counter.flop_registry, *ON_CPUS)}
"""The operators whose operations are known, by their names in a profile."""

LINE = " | "
"""The separator between the name of a stage and the source line in a label."""

KINDS = ("conv", "attention")
"""Words in the names of operators that delegate their work to another operator with the same word."""


def operators(profiler: profile, calls: Sequence[Call], kind: Kind) -> tuple[ProfiledOperator, ...]:
    """Return the operators in `key_averages` of a profile, averaged over its calls, the longest first.

    Labels are left out. torch groups events by their stack, which is set to the source line of a labelled operator.
    """
    events, flops, launched = profiler.events(), _flops(calls), defaultdict[tuple[str, str], list[str]](list)
    assert events is not None
    events[:] = [event for call in calls for event in call.host if not is_label(event)]
    labels = {event: place.label for call in calls for event, place in call.places.items()}
    for event in events:
        line = labels.get(event, "").partition(LINE)[2]
        event.stack, event.flops = [line], flops.get(event)
        launched[event.name, line] += [kernel.name for kernel in event.kernels]
    number = len(calls)
    averages = [
        ProfiledOperator(
            name(each.key),
            calls=each.count / number,
            self_s=each.self_cpu_time_total * MICROSECOND_S / number,
            device_s=None if kind.is_timed_by_host else each.self_device_time_total * MICROSECOND_S / number,
            flops=each.flops / number or None,
            kernels=tuple(dict.fromkeys(launched[each.key, *each.stack])),
            line=each.stack[0],
        )
        for each in events.key_averages(group_by_stack_n=1)
    ]
    return tuple(sorted(averages, key=lambda operator: -operator.time_s))


def stages(calls: Sequence[Call], kind: Kind) -> tuple[Stage, ...]:
    """Return the stages, forward and backward, averaged over the calls, in the order of their start."""
    times = defaultdict[tuple[str, str], float](float)
    for call in calls:
        for event, place in call.places.items():
            stage = place.label.partition(LINE)[0], BACKWARD if place.is_backward else FORWARD
            times[stage] += call.part_s(event, kind) / len(calls)
    return tuple(Stage(*stage, time_s) for stage, time_s in times.items())


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
    """Return the operations of each event that does the work; of nested operators only the outermost is counted."""
    flops = Counter[FunctionEvent]()
    for event in (event for call in calls for event in call.host if event.name in COUNTED):
        if not any(each.name in COUNTED for each in around(event.cpu_parent)):
            flops[_worker(event)] += operations(event)
    return flops


def _worker(event: FunctionEvent) -> FunctionEvent:
    """Return the operator that does an operator's work, such as the backend of a convolution; itself without one."""
    kind = next((kind for kind in KINDS if kind in event.name), None)
    inner = next((child for child in event.cpu_children if kind and kind in child.name), None)
    return _worker(inner) if inner else event


def operations(event: FunctionEvent) -> int:
    """Return the floating-point operations of an event in COUNTED, as torch counts them from the shapes of its inputs.

    They are 0 if the shapes aren't enough.
    """
    operator = COUNTED[event.name].default
    arguments = (each for each in operator._schema.arguments if not each.kwarg_only)
    inputs = [
        torch.empty(shape, device="meta") if shape or argument.type == torch.TensorType.get() else value
        for argument, shape, value in zip(arguments, event.input_shapes, event.concrete_inputs, strict=False)
    ]
    try:
        with FlopCounterMode(display=False, custom_mapping=ON_CPUS) as counter:
            operator(*inputs)
    except Exception:  # such as products in float8, whose inputs have another dtype
        return 0
    return int(counter.get_total_flops())
