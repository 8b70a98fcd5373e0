"""Whether a layer is a function: the same input gives the same output, for each item by itself.

Only then can outputs be compared. A layer with dropout would be off from itself by as much as any other kernel is.
"""

import random
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bench.measure import failure, finite, in_place, user_code
from bench.measure.workload import Tensors, Workload
from bench.modules.wrapper import copied
from bench.sampling.inputs import NORMAL
from impls.contract import Unsupported
from impls.sameness import are_same

OTHER = -2.0
"""What another item is multiplied by, so that sums over both items have another sign than those over the first one."""

BY_ITEM = "outputs are compared item by item"
"""Why a layer must be a function of each item."""

DRAWS = 32
"""The calls of a layer that draws random numbers: a path that is dropped in one of ten is found in 97 % of layers."""


def check(workload: Workload) -> None:
    """Raise `impls.Unsupported` with the reason if the layer, in the point's mode, is no function of each item.

    So it does, before that, if the layer's output is not finite.
    """
    layer = copied(workload.layer).to("cpu", torch.float32)
    items = workload.items(2, torch.float32)
    x, state = tuple(each[:1] for each in items), _random_state()
    others = tuple(OTHER * each[:1] if each.is_floating_point() else each[-1:] for each in items)
    first = _output(layer, x)
    if isinstance(first, Exception):
        _check_alone(layer, workload, first)
        raise first
    finite.check(workload, layer, x, [first], [0], NORMAL)
    other = _output(layer, others)  # what a layer keeps of its input differs then
    again = [_output(layer, x)]
    draws = _random_state() != state
    again += [_output(layer, x) for _ in range(DRAWS if draws else 0)]
    if error := next((each for each in again if isinstance(each, Exception)), None):
        raise Unsupported(f"the layer fails if it is called again: {user_code.said(error)}")
    if not all(_are_same(each, first) for each in again):
        cause = (
            "it draws random numbers, as dropout and random hashes do"
            if draws
            else "does it keep state from call to call?"
        )
        raise Unsupported(f"the layer returns something else for the same input; {cause}")
    if workload.point.batch > 1:
        _check_items(layer, (x, first), (others, other))
    in_place.check(layer, x)


def _check_alone(layer: nn.Module, workload: Workload, error: Exception) -> None:
    """Raise `impls.Unsupported` if a layer that fails with one item can be called with the batch."""
    batch = workload.point.batch
    if not isinstance(_output(layer, workload.items(batch, torch.float32)), Exception):
        raise Unsupported(
            f"the layer can be called with {batch} items, but not with one: {user_code.said(error)}; {BY_ITEM}"
        )


def _check_items(
    layer: nn.Module, first: tuple[Tensors, Tensor | Exception], second: tuple[Tensors, Tensor | Exception]
) -> None:
    """Raise `impls.Unsupported` if the output for two items isn't those for each of them; a pair has an item's both."""
    both = _output(layer, tuple(map(torch.cat, zip(first[0], second[0], strict=True))))
    if isinstance(both, Exception):
        if failure.is_out_of_memory(both):
            raise both
        raise Unsupported(f"the layer can be called with one item, but not with two: {user_code.said(both)}; {BY_ITEM}")
    is_first = _are_same(both[:1], first[1])
    if is_first and _are_same(both[1:], second[1]):
        return
    # the second item beside itself: then its place alone changes what comes out
    twice = _output(layer, tuple(torch.cat([each, each]) for each in second[0]))
    if is_first and isinstance(twice, Tensor) and _are_same(both[1:], twice[1:]):
        cause = "its place in the batch, as with a cache of each item that the layer holds"
    else:
        cause = "the other items of the batch, as with BatchNorm in training"
    raise Unsupported(f"the layer's output for an item depends on {cause}; {BY_ITEM}")


def _output(layer: nn.Module, xs: Tensors) -> Tensor | Exception:
    """Return the output, or the error that a call ends with."""
    try:
        with torch.no_grad():
            y: Tensor = layer(*(x.clone() for x in xs))
            return y.clone()
    except Exception as error:
        return error


def _random_state() -> tuple[Any, ...]:
    """Return the state of the generators that a layer may draw from."""
    numbers = np.random.get_state(legacy=False)["state"]
    return random.getstate(), torch.get_rng_state().tolist(), numbers["key"].tolist(), numbers["pos"]


def _are_same(one: Tensor | Exception, other: Tensor | Exception) -> bool:
    if isinstance(one, Exception) or isinstance(other, Exception):
        return type(one) is type(other)
    return are_same(one, other)
