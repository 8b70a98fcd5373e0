"""Whether a layer is a function: the same input gives the same output, for each item by itself.

Only then can outputs be compared. A layer with dropout would be off from itself by as much as any other kernel is.
"""

import copy
import random
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bench.measure import finite
from bench.measure.workload import Tensors, Workload
from bench.sampling.inputs import NORMAL
from impls.contract import Unsupported

SAME = 1e-4
"""The largest deviation between two outputs that are the same, relative to the largest value. They are computed in
float32, and another number of items is rounded in another order."""

DRAWS = 32
"""The calls of a layer that draws random numbers: a path that is dropped in one of ten is found in 97 % of layers."""


def check(workload: Workload) -> None:
    """Raise `impls.Unsupported` with the reason if the layer, in the point's mode, is no function of each item.

    So it does, before that, if the layer's output is not finite.
    """
    layer = copy.deepcopy(workload.layer).to("cpu", torch.float32)
    items = workload.items(2, torch.float32)
    x, state = tuple(each[:1] for each in items), _random_state()
    first = _output(layer, x)
    if isinstance(first, Tensor):
        finite.check(workload, layer, x, [first], [0], NORMAL)
    others = (-each if each.is_floating_point() else each for each in x)
    _output(layer, tuple(others))  # so that what a layer keeps of its input differs
    again = [_output(layer, x)]
    draws = _random_state() != state
    again += [_output(layer, x) for _ in range(DRAWS if draws else 0)]
    if not all(_are_same(each, first) for each in again):
        cause = "it draws random numbers: is dropout on?" if draws else "does it keep state from call to call?"
        raise Unsupported(f"the layer returns something else for the same input; {cause}")
    both = _output(layer, items)
    if isinstance(both, Exception):
        raise both
    if not _are_same(both[:1], first):
        raise Unsupported(
            "the layer's output for an item depends on the other items of the batch, as with BatchNorm in training; "
            "outputs are compared item by item"
        )


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
    if one.shape != other.shape:
        return False
    largest = float(other.nan_to_num(0.0).abs().max()) if other.numel() else 0.0
    return torch.allclose(one, other, rtol=0.0, atol=SAME * largest, equal_nan=True)
