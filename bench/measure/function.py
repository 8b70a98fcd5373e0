"""Whether a layer is a function of each item: only then can outputs be compared.

A layer with dropout would be off from itself by as much as any other kernel is.
"""

import torch
from torch import Tensor, nn

from bench.measure import failure, finite, user_code
from bench.measure.layer import Tensors
from bench.measure.workload import Workload
from bench.modules.inputs import by_function
from bench.modules.wrapper import copied
from bench.sampling.inputs import NORMAL
from impls.catalogue import name_of
from impls.contract import Unsupported
from impls.sameness import are_same

OTHER = -2.0
"""What another item is multiplied by, so that sums over both items have another sign than those over the first one."""

RULE = "the layer must return the same output for the same input, whatever the other items of the batch are"

BATCH = "the batch must be the first dimension of inputs and output"


def check(workload: Workload) -> None:
    """Raise Unsupported if the layer, in the point's mode, is no function of each item, or changes its input.

    So it does if the output is not finite.
    """
    try:
        _check(workload, copied(workload.layer).to("cpu", torch.float32))
    except Exception as error:
        if isinstance(error, Unsupported) or failure.is_out_of_memory(error):
            raise
        said = user_code.said(error)
        raise Unsupported(f"{RULE}; with one or two items it raises {said}; {_hint(workload)}") from error


def _check(workload: Workload, layer: nn.Module) -> None:
    items = workload.items(2, torch.float32)
    x = tuple(each[:1] for each in items)
    others = tuple(OTHER * each[:1] if each.is_floating_point() else each[-1:] for each in items)
    first = _output(layer, x)
    finite.check(workload, [first], f"{NORMAL}, one item")
    other, drawn = _output(layer, others), torch.get_rng_state()
    again = _output(layer, x)
    if not torch.equal(drawn, torch.get_rng_state()):  # a path that is rarely dropped may be there in both calls
        raise Unsupported(f"{RULE}; it draws random numbers")
    if not are_same(again, first):
        raise Unsupported(f"{RULE}; a second call on the same input returns something else")
    is_one = workload.point.batch == 1
    if is_one and layer.training:
        return
    try:
        both = _output(layer, tuple(map(torch.cat, zip(x, others, strict=True))))
    except Exception:
        if is_one:  # it may be made for one item
            return
        raise
    if not (are_same(both[:1], first) and are_same(both[1:], other)):
        raise Unsupported(f"{RULE}; for two items it returns something else than for each alone; {_hint(workload)}")


def _hint(workload: Workload) -> str:
    """Return what to write for a layer that may take something else than it gets."""
    name = workload.point.layer
    if path := name_of(name).options.get("at"):
        return f"{BATCH}: if {path} has another, name a function of yours that returns it in a module that turns it"
    given = ", ".join(str([*shape]) for shape in workload.shapes)
    return f"{BATCH}; if it takes something else than {given}, write {by_function(name)}"


def _output(layer: nn.Module, xs: Tensors) -> Tensor:
    """Return the output; raises Unsupported if the layer changes its input."""
    own = tuple(x.clone() for x in xs)
    with torch.no_grad():
        y: Tensor = layer(*own)
    if not all(map(torch.equal, own, xs)):
        raise Unsupported("the layer must not change its input in place: outputs are compared for the same input")
    return y.clone()
