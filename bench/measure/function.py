"""Check that a layer is a function of each item, because only then can outputs be compared.

A layer with dropout, for example, differs from itself.
"""

import torch
from torch import Tensor, nn

from bench.measure import failure, finite, user_code
from bench.measure.layer import Tensors
from bench.measure.workload import Workload
from bench.modules.inputs import if_another
from bench.modules.wrapper import copied
from bench.sampling.inputs import NORMAL
from impls.contract import Unsupported
from impls.sameness import are_same

OTHER = -2.0
"""The factor of the second item, whose sign makes sums over both items differ in sign from sums over the first."""

RULE = "the layer must return the same output for the same input"
ALONE = "an item alone must give the same output as in a batch, which is the first dimension"


def check(workload: Workload) -> None:
    """Raise Unsupported if the layer, in the point's mode, mixes items, varies, edits its input or isn't finite."""
    try:
        _check(workload, copied(workload.layer).to("cpu", torch.float32))
    except Exception as error:
        if isinstance(error, Unsupported) or failure.is_out_of_memory(error):
            raise
        what = if_another(workload.point.layer)
        raise Unsupported(f"with one or two items it raises {user_code.said(error)}; {what}") from error


def _check(workload: Workload, layer: nn.Module) -> None:
    items = workload.items(2, torch.float32)
    x = tuple(each[:1] for each in items)
    others = tuple(OTHER * each[:1] if each.is_floating_point() else each[-1:] for each in items)
    first = _output(layer, x)
    finite.check(workload, [first], f"{NORMAL}, one item")
    other, drawn = _output(layer, others), torch.get_rng_state()
    again = _output(layer, x)
    if not torch.equal(drawn, torch.get_rng_state()):  # rare drops may be missing in both calls
        raise Unsupported(f"{RULE}, but it draws random numbers")
    if not are_same(again, first):
        raise Unsupported(f"{RULE}, but a second call returns something else")
    if workload.point.batch == 1 and layer.training:
        return
    try:
        both = _output(layer, tuple(map(torch.cat, zip(x, others, strict=True))))
    except Exception:
        if workload.point.batch == 1:  # the layer may be made for one item
            return
        raise
    if not (are_same(both[:1], first) and are_same(both[1:], other)):
        raise Unsupported(f"{ALONE}; {if_another(workload.point.layer)}")


def _output(layer: nn.Module, xs: Tensors) -> Tensor:
    """Return the output; raises Unsupported if the layer changes its input."""
    own = tuple(x.clone() for x in xs)
    with torch.no_grad():
        y: Tensor = layer(*own)
    if not all(map(torch.equal, own, xs)):
        raise Unsupported("the layer must not change its input in place")
    return y.clone()
