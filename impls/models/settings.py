"""The settings of a model's attention: its library's own switches, torch's backends, and any attend in its place.

Each setting is an adapter. It works on a copy of the model that shares the weights, and looks at a call of it: if the
switch did not take, it raises `Unsupported` with the reason.
"""

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from impls.attend.sdpa import lacks_kernel
from impls.contract import Adapt, Implementation, Unsupported, compiling, declared_options
from impls.models.model import Model
from impls.models.watch import UNFUSED, Core, cores


def as_is(layer: nn.Module) -> Implementation:
    """Return the model as it is."""
    return layer


def _copy(layer: nn.Module) -> Model:
    """Return a copy of a model that shares its weights and has modules of its own."""
    if not isinstance(layer, Model):
        raise Unsupported("this is a setting of whole models")
    shared = {id(tensor): tensor for tensor in chain(layer.parameters(), layer.buffers())}
    return copy.deepcopy(layer, shared)


def switched(layer: nn.Module, name: str) -> Model:
    """Return a copy of a model whose library computes attention by `sdpa` or `eager`, if it has a switch to that."""
    model = _copy(layer)
    for module in model.inner.modules():
        _switch(module, name)
    if name in model.forms:  # a layer of transformers reads the choice from the configuration of its model
        model.args, model.kwargs = model.forms[name]
        for config in configs(model.inner):
            config._attn_implementation = name
    return model


def configs(module: nn.Module) -> list[Any]:
    """Return the configurations of transformers that a module and its parts hold."""
    held = (getattr(each, "config", None) for each in module.modules())
    return [config for config in held if hasattr(config, "_attn_implementation")]


def fused(layer: nn.Module) -> Model:
    """Return the model with every core in `F.scaled_dot_product_attention`, by the library's own switch.

    That is `fused_attn` in timm, the attention `sdpa` in transformers, and torch's own modules without their fast path.
    """
    model = switched(layer, "sdpa")
    model.context = _without_fast_path
    every = cores_of(model)
    if outside := [core for core in every if not (core.by_sdpa or core.is_fused)]:
        raise Unsupported(
            f"the model computes {len(outside)} of {len(every)} attention cores by itself, in {_classes(outside)}, "
            "and has no switch to F.scaled_dot_product_attention"
        )
    return model


def unfused(layer: nn.Module) -> Model:
    """Return the model with every core as two matrix products and a softmax, by the library's own switch.

    That is `fused_attn` in timm and the attention `eager` in transformers.
    """
    model = switched(layer, "eager")
    if others := [core for core in cores_of(model) if core.by_sdpa or core.operator != UNFUSED]:
        runs = f"{_classes(others)} runs {others[0].operator}"
        raise Unsupported(f"the model has no switch to unfused attention: {runs}")
    return model


def pinned(backend: SDPBackend) -> Callable[[nn.Module], Model]:
    """Return the setting in which every core is in one backend of `F.scaled_dot_product_attention`."""

    def adapt(layer: nn.Module) -> Model:
        model = fused(layer)
        model.context = partial(_pinned, backend)
        cores_of(model)  # the backend may refuse what the model asks for
        return model

    return adapt


def with_core(layer: nn.Module, adapt: Adapt, **options: Any) -> Implementation:
    """Return the model with each core computed by an adapter's attend, in place of `F.scaled_dot_product_attention`."""
    model = fused(layer)
    if outside := [core for core in cores_of(model) if not core.by_sdpa]:
        raise Unsupported(
            f"{_classes(outside)} calls scaled_dot_product_attention by a name of its own, "
            "so that no attend can be put in place"
        )
    adapted = adapt(model, **options)
    if isinstance(adapted, Model):
        cores_of(adapted)  # the attend may refuse a mask
    return adapted


def _compiled(setting: Callable[[nn.Module], Model]) -> Adapt:
    """Return the setting that compiles the model of another one; `mode` is passed to `torch.compile`."""

    @compiling
    def adapt(layer: nn.Module, *, mode: str | None = None) -> Implementation:
        model = setting(layer)
        model.inner.compile(dynamic=False, mode=mode)
        return model

    return adapt


compiled = _compiled(_copy)
"""The model as it is, compiled."""


def of_model(name: str, resolve: Callable[[str], Adapt]) -> Adapt:
    """Return the adapter of a name for whole models.

    A name that isn't a setting is an adapter that replaces the core.
    """
    if name in SETTINGS:
        return SETTINGS[name]
    adapt = resolve(name)
    into_model = partial(with_core, adapt=adapt)
    into_model.options = declared_options(adapt)  # type: ignore[attr-defined]  # functions take attributes
    return into_model


def cores_of(model: Model) -> list[Core]:
    """Return the cores of a call on one item; raises `Unsupported` if there are none or if a backend refuses."""
    weight = next(model.parameters())
    mode = torch.enable_grad() if model.training else torch.inference_mode()
    try:
        with mode:
            every = cores(model, torch.zeros(1, *model.item, dtype=weight.dtype, device=weight.device))
    except ValueError as error:
        raise Unsupported(f"the library refuses it: {error}") from None
    except RuntimeError as error:
        if not lacks_kernel(error):
            raise
        raise Unsupported(f"the backend can't compute the model's attention: {error}") from None
    if not every and model.attend is None:
        raise Unsupported("no attention was found in the model")
    return every


def _classes(some: Sequence[Core]) -> str:
    return ", ".join(sorted({core.class_name for core in some}))


def _switch(module: nn.Module, name: str) -> None:
    if isinstance(getattr(module, "fused_attn", None), bool | int):
        module.fused_attn = name == "sdpa"  # type: ignore[assignment]  # a flag of timm's
    choose = getattr(module, "set_attn_implementation", None)
    if callable(choose):
        with contextlib.suppress(ValueError):  # the model has one attention only
            choose(name)


@contextmanager
def _without_fast_path() -> Iterator[None]:
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


@contextmanager
def _pinned(backend: SDPBackend) -> Iterator[None]:
    with _without_fast_path(), sdpa_kernel(backend):
        yield


SETTINGS: dict[str, Adapt] = {
    "as_is": as_is,
    "compiled": compiled,
    "eager": unfused,
    "compiled_eager": _compiled(unfused),
    "sdpa": fused,
    "compiled_sdpa": _compiled(fused),
    "sdpa_math": pinned(SDPBackend.MATH),
    "sdpa_flash": pinned(SDPBackend.FLASH_ATTENTION),
    "sdpa_efficient": pinned(SDPBackend.EFFICIENT_ATTENTION),
    "sdpa_cudnn": pinned(SDPBackend.CUDNN_ATTENTION),
}
"""The names whose meaning in a model is a switch of its library or of torch."""
