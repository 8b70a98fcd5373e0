"""Make the layer of a point, and find the shape of its output and the operations of a call."""

import dataclasses
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

import impls
from bench.measure import user_code
from bench.modules.inputs import if_another
from bench.modules.making import make, maker_of
from bench.modules.stated import flops
from bench.modules.wrapper import check_plain, copied, inner_of
from bench.plan.case import COLUMNS, Point
from bench.plan.layers import layer_of
from impls.catalogue import NO_MASK

TRAINED = ("train", "backward")
"""The modes in which a call returns gradients."""

Tensors = tuple[Tensor, ...]
"""The inputs of a call."""

Shapes = tuple[tuple[int, ...], ...]


def cast_to(tensor: Tensor, device: Any, dtype: torch.dtype | None) -> Tensor:
    """Return a tensor on another device, and in another dtype if it is floating-point."""
    return tensor.to(device, dtype if tensor.is_floating_point() else None)


def made(point: Point) -> tuple[nn.Module, Shapes]:
    """Return the module of a point, and the shapes of its inputs."""
    of = layer_of(point.layer)
    columns = (column for column in COLUMNS.values() if column.name not in of.fixed)
    required = [each.name for each in columns if each.changes_function and not each.is_usual(point)]
    layer, shapes = make(of.path, dataclasses.asdict(point), required)
    draw_weights: Callable[[], None] | None = getattr(layer, "draw_weights", None)
    if draw_weights and not of.is_module:  # in other packages it may mean something else
        draw_weights()
    return layer, shapes


def traced(point: Point, layer: nn.Module, xs: Tensors) -> tuple[torch.Size, int | None]:
    """Return the shape of the layer's output and the operations of a call, None if they are unknown.

    The layer is on the CPU in float32; its inputs may be on another device, in another dtype. The suite's own layers
    aren't called, because torch's first use of the device "meta" imports the compiler for more than a second.
    """
    of = layer_of(point.layer)
    if not of.is_module:
        return torch.Size(of.output(point)), of.flops(point)
    on_meta = tuple(cast_to(x, "meta", torch.float32) for x in xs)
    try:
        result, counted = _counted(point, copied(layer).to("meta"), on_meta)
    except Exception:  # a layer may need tensors with values
        # first to the CPU: a cast on a GPU would need more of its memory
        result, counted = counted_with_values(point, layer, tuple(cast_to(x.cpu(), None, torch.float32) for x in xs))
    if type(result) is not Tensor or result.shape[:1] != (point.batch,):
        got = list(result.shape) if isinstance(result, Tensor) else type(result).__name__
        raise impls.Unresolved(
            f"layer {point.layer!r} must return a tensor whose first dimension is the batch {point.batch}, got {got}"
        )
    stated = flops(inner_of(layer), maker_of(point.layer), point)
    return result.shape, counted if stated is None else stated


def counted_with_values(point: Point, layer: nn.Module, xs: Tensors) -> tuple[Any, int | None]:
    """Call a layer on the CPU; return its output and its operations, None if unknown. Raises `impls.Unresolved`."""
    try:
        return _counted(point, copied(layer), xs)
    except (impls.Unresolved, impls.Unsupported) as error:
        raise type(error)(f"layer {point.layer!r}: {error}") from error
    except Exception as error:
        with suppress(Exception):  # with gradients torch's counter fails at some views
            if point.mode == "inference":
                return _counted(point, copied(layer).requires_grad_(False), xs, with_graph=False)
            return copied(layer)(*xs), None
        given, said = ", ".join(str([*x.shape]) for x in xs), user_code.said(error)
        raise impls.Unresolved(
            f"layer {point.layer!r} fails when called with {given}: {said}; {if_another(point.layer)}"
        ) from error


def _counted(point: Point, layer: nn.Module, xs: Tensors, *, with_graph: bool = True) -> tuple[Any, int | None]:
    """Return a layer's output, and the operations that torch counts in a call of the point's mode.

    The count of a masked layer is None: it may compute scores that the mask removes, so the work is unknown.
    """
    with FlopCounterMode(display=False) as counter, torch.set_grad_enabled(with_graph):
        output = layer(*(x.detach().requires_grad_(point.mode in TRAINED and x.is_floating_point()) for x in xs))
        if isinstance(output, Tensor):
            check_plain(output)
        forward = counter.get_total_flops()
        if point.mode in TRAINED and isinstance(output, Tensor):
            output.sum().backward()
        flops = counter.get_total_flops() - (forward if point.mode == "backward" else 0)
    return output, None if point.mask != NO_MASK else flops or None
