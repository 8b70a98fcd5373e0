"""Make a model from its name: `timm:vit_small_patch16_224`, `transformers:BertConfig[tokens=64,padding=8]`.

With `at=PATH` in brackets it is a layer of the model, `timm:vit_small_patch16_224[at=blocks.0.attn]`: the module at
this path, with the input that it gets in the model.
"""

from typing import Any

import torch
from torch import Tensor, nn

from impls.contract import Unresolved
from impls.models import sources
from impls.models.model import Model, Place
from impls.name import parse

SMALL = 0.1
"""A parameter whose numbers are all the same and smaller than this hides the layers before it."""

WEIGHT_SD, GAMMA = 0.02, 0.5
"""The standard deviation of weights in place of zeros, and the number in place of a small one."""

ITEMS = 2
"""The items of the call that shows a layer's input."""


def make(name: str) -> Model:
    """Return a model, or a layer of one, with random weights; raises Unresolved if there is none of this name."""
    parsed = parse(name)
    options = {key: value for key, value in parsed.options.items() if key != "at"}
    source, _, base = parsed.base.partition(":")
    model = sources.made(source, base, options)
    show_all(model)
    at = str(parsed.options.get("at", ""))
    return layer(model.eval(), at, name) if at else model


def show_all(model: nn.Module) -> None:
    """Give numbers to parameters that hide what is computed before them, such as a head of zeros or a layer scale.

    With them any attention would give the right output.
    """
    with torch.no_grad():
        for parameter in model.parameters():
            first = float(parameter.flatten()[0]) if parameter.numel() else 1.0
            if abs(first) >= SMALL or not bool((parameter == first).all()):
                continue
            if first:
                parameter.fill_(GAMMA)
            else:
                parameter.normal_(std=WEIGHT_SD)


def layer(model: Model, path: str, name: str) -> Model:
    """Return the module at a path of a model as a model, with the arguments that it gets in a call."""
    try:
        module = model.inner.get_submodule(path)
    except AttributeError as error:
        raise Unresolved(f"model {name!r} has no module {path!r}: {error}") from None
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def keep(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        calls.append((args, kwargs))

    hook = module.register_forward_pre_hook(keep, with_kwargs=True)
    try:
        with torch.no_grad():
            model(torch.randn(ITEMS, *model.item))
    finally:
        hook.remove()
    if not calls:
        raise Unresolved(f"model {name!r} doesn't call its module {path!r}")
    args, kwargs = calls[0]
    x = next((value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)), None)
    if x is None or x.shape[0] % ITEMS:
        raise Unresolved(f"model {name!r}: the input of {path!r} must begin with the batch")
    group = x.shape[0] // ITEMS
    item = (group, *x.shape[1:]) if group > 1 else tuple(x.shape[1:])
    args = tuple(Place.X if value is x else value for value in args)
    kwargs = {key: Place.X if value is x else value for key, value in kwargs.items()}
    return Model(module, item, args, kwargs, batch=x.shape[0], group=group)
