"""Models by their names: `timm:vit_small_patch16_224`, `transformers:BertConfig[tokens=64,padding=8]`.

They come from timm, torchvision, transformers or a function of the user's own; nothing is downloaded. A source returns
the model with random weights and its input. The options in a model's name are those of its constructor, besides `input`
(the shape of an item, as 3x224x224, or `module:function`), `tokens`, `padding` and `at`: with `at=PATH` it is a layer
of the model, the module at this path with the input that it gets in the model.
"""

import copy
import difflib
import functools
import importlib
import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from impls.catalogue import parse
from impls.contract import Unresolved, Unsupported, imported
from impls.models.model import Model, Place, changed
from impls.models.settings import configs, switched

TOKENS = 128
"""The tokens of a text if the name says nothing, or fewer if the model takes no more."""

IMAGE_SIDE = 224
"""The height and width of an image if neither the name nor the model's configuration says one."""

TORCHVISION_OPERATORS = ("nms", "qnms")
"""What torchvision's Python part asks torch for even where its compiled part was built for another torch."""

INSTALL = "pip install -c constraints.txt timm torchvision transformers"
"""How to get the libraries; `nox -s advise` does it by itself."""

SMALL = 0.1
"""A parameter whose numbers are all the same and smaller than this hides the layers before it."""

WEIGHT_SD, GAMMA = 0.02, 0.5
"""The standard deviation of weights in place of zeros, and the number in place of a small one."""

ITEMS = 2
"""The items of the call that shows a layer's input."""

PLAIN = (Tensor, int, float, str, tuple, list, dict, type(None))
"""The types of arguments that hold no state between calls."""

NEAR = 1e-3
"""Outputs that differ by less than this share of the largest one are the same: batches may have other kernels."""

Options = dict[str, Any]


def make(name: str) -> Model:
    """Return a model, or a layer of one, with random weights.

    Raises Unresolved if the library isn't installed, the name or an option is unknown, or the input isn't known.
    """
    parsed = parse(name)
    options = dict(parsed.options)
    path = str(options.pop("at", ""))
    source, _, base = parsed.base.partition(":")
    model = SOURCES[source](base, options) if source in SOURCES else _own(parsed.base, options)
    show_all(model)
    return layer(model.eval(), path, name) if path else model


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
    """Return the module at a path of a model as a model, with the arguments that it gets in a call.

    If the model's library has a switch, they are those of each attention: a mask of `sdpa` may be none for `eager`.
    Raises Unresolved if the model doesn't call the module, `Unsupported` if the module can't be called again alone.
    """
    for config in configs(model.inner):
        config.use_cache = False  # it would grow from call to call
    # the items are all the same, and so is what is computed from them
    call = partial(_arguments_at, path, name, torch.randn(1, *model.item).expand(ITEMS, *model.item))
    args, kwargs = call(model)
    x = _first(args, kwargs)
    if x is None or x.shape[0] % ITEMS:
        raise Unresolved(f"model {name!r}: the input of {path!r} must begin with the batch")
    group = x.shape[0] // ITEMS
    item = (group, *x.shape[1:]) if group > 1 else tuple(x.shape[1:])
    forms = {}
    for form in ("sdpa", "eager"):
        other = switched(model, form)
        if {config._attn_implementation for config in configs(other.inner.get_submodule(path))} == {form}:
            forms[form] = _with_x(*call(other))
    module = model.inner.get_submodule(path)
    alone = Model(module, item, *_with_x(args, kwargs), batch=x.shape[0], group=group, forms=forms)
    _check_repeats(alone, f"{name!r} can't be run by itself", (*args, *kwargs.values()))
    return alone


def _arguments_at(path: str, name: str, x: Tensor, model: Model) -> Any:
    """Return the arguments of a model's first call of the module at a path, as they were before that call."""
    try:
        module = model.inner.get_submodule(path)
    except AttributeError as error:
        raise Unresolved(f"model {name!r} has no module {path!r}: {error}") from None
    calls: list[Any] = []

    def keep(_module: nn.Module, args: Any, kwargs: Any) -> None:
        if not calls:
            calls.append(copy.deepcopy((args, kwargs)))

    hook = module.register_forward_pre_hook(keep, with_kwargs=True)
    try:
        with torch.no_grad():
            model(x)
    finally:
        hook.remove()
    if not calls:
        raise Unresolved(f"model {name!r} doesn't call its module {path!r}")
    return calls[0]


def _check_repeats(alone: Model, what: str, values: Iterable[Any]) -> None:
    """Raise `Unsupported` if a layer returns something else for an item that comes again, without the others."""
    x = torch.randn(ITEMS, *alone.item)
    try:
        with torch.no_grad():
            y, again = alone(x)[:1], alone(x[:1])
        if torch.allclose(y, again, rtol=0.0, atol=NEAR * float(y.abs().max()), equal_nan=True):
            return
        reason = "called again, with one of the items, it returns something else for it"
    except Exception as error:  # what it keeps has grown, or has the size of another batch
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
    states = {type(value).__name__: value for value in values if not isinstance(value, PLAIN)}
    cause = f"it may change the {' and '.join(states)} that it gets" if states else "it may keep a state or mix items"
    raise Unsupported(f"{what}, because {cause}: {reason}")


def library(name: str) -> Any:
    """Return an imported library; raises Unresolved with the command that installs it."""
    _mend_torchvision()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in (name, "torchvision"):
            raise Unresolved(f"{name} can't be imported: {error}") from error
        raise Unresolved(f"{error.name} is not installed; install it with: {INSTALL}") from None


@functools.cache
def _mend_torchvision() -> torch.library.Library | None:
    """Declare torchvision's operators if it was built for another build of this torch; no model here calls them.

    The others import it too, and would fail as it does. The result keeps the operators declared.
    """
    try:
        importlib.import_module("torchvision")
    except ModuleNotFoundError:
        return None
    except RuntimeError as error:
        if "operator torchvision::" not in str(error):
            raise
        declared = torch.library.Library("torchvision", "FRAGMENT")
        for operator in TORCHVISION_OPERATORS:
            declared.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return declared
    return None


def _timm(name: str, options: Options) -> Model:
    timm = library("timm")
    if not timm.is_model(name):
        raise Unresolved(_unknown("timm", name, timm.list_models()))
    given, size = options.pop("input", None), options.get("img_size")
    inner = _constructed(name, lambda: timm.create_model(name, pretrained=False, **options))
    usual = (3, size, size) if isinstance(size, int) else tuple(inner.default_cfg["input_size"])
    return _with_input(inner, given, usual)


def _torchvision(name: str, options: Options) -> Model:
    models = library("torchvision").models
    if name not in models.list_models():
        raise Unresolved(_unknown("torchvision", name, models.list_models()))
    given = options.pop("input", None)
    inner = _constructed(name, lambda: models.get_model(name, weights=None, **options))
    side = getattr(inner, "image_size", IMAGE_SIDE)
    return _with_input(inner, given, (3, side, side))


def _transformers(name: str, options: Options) -> Model:
    transformers = library("transformers")
    given, tokens, padding = (options.pop(key, None) for key in ("input", "tokens", "padding"))
    config = _config(transformers, name, options)
    inner = _constructed(name, lambda: transformers.AutoModel.from_config(config))
    if _is_function(given):
        return _with_input(inner, given, ())
    if inner.main_input_name == "pixel_values":
        side = getattr(config, "image_size", None) or IMAGE_SIDE
        height, width = side if isinstance(side, list | tuple) else (side, side)
        usual = (getattr(config, "num_channels", 3), height, width)
        return _with_input(inner, given, usual, keyword="pixel_values")
    if inner.main_input_name != "input_ids" or "inputs_embeds" not in inspect.signature(inner.forward).parameters:
        raise Unresolved(
            f"transformers:{name} takes {inner.main_input_name}; expected a model of images or of texts, or --input "
            "mymodel:inputs, a function that returns its inputs by name"
        )
    if given is not None:
        raise Unresolved(f"transformers:{name} has its input by [tokens=64,padding=8] or --input mymodel:inputs")
    most = max(0, getattr(config.get_text_config(), "max_position_embeddings", None) or 0) or math.inf
    tokens, padding = int(min(TOKENS, most) if tokens is None else tokens), int(padding or 0)
    if not 0 <= padding < tokens <= most:
        raise Unresolved(f"transformers:{name}: padding < tokens <= {most} must hold, got {padding} and {tokens}")
    kwargs: dict[str, Any] = {"inputs_embeds": Place.X}
    if config.is_encoder_decoder:
        kwargs["decoder_inputs_embeds"] = Place.X
    if padding:
        kwargs["attention_mask"] = (torch.arange(tokens)[None] < tokens - padding).long()
    return Model(inner, (tokens, inner.get_input_embeddings().embedding_dim), (), kwargs, batch=1)


def _config(transformers: Any, name: str, options: Options) -> Any:
    """Return the configuration of a class of transformers, or that in a file or a folder."""
    if not (name.endswith(".json") or "/" in name):
        kind = getattr(transformers, name, None)
        if not (inspect.isclass(kind) and issubclass(kind, transformers.PretrainedConfig)):
            names = [each for each in dir(transformers) if each.endswith("Config")]
            raise Unresolved(_unknown("transformers", name, names) + ", or a config.json")
        return _constructed(name, partial(kind, **options))
    path = Path(name, "config.json") if Path(name).is_dir() else Path(name)
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Unresolved(f"transformers:{path} can't be read as a config.json: {error}") from None
    named = values.pop("model_type", "")
    return _constructed(str(path), lambda: transformers.AutoConfig.for_model(named, **{**values, **options}))


def _own(name: str, options: Options) -> Model:
    given = options.pop("input", None)
    inner = _constructed(name, lambda: imported(name, f"model {name!r}")(**options))
    if not isinstance(inner, nn.Module):
        raise Unresolved(f"model {name!r} must return a torch.nn.Module, got {type(inner).__name__}")
    if given is None:
        raise Unresolved(f"model {name!r}: its input isn't known; give --input, as 8x3x224x224 or mymodel:inputs")
    return _with_input(inner, given, ())


def _with_input(inner: nn.Module, given: Any, usual: tuple[int, ...], keyword: str = "") -> Model:
    """Return a model with the input that its name gives, or its usual one."""
    if _is_function(given):
        return _with_inputs(inner, imported(given, f"input {given!r}")())
    item = usual if given is None else tuple(int(side) for side in str(given).split("x"))
    return Model(inner, item, () if keyword else (Place.X,), {keyword: Place.X} if keyword else {})


def _is_function(given: Any) -> bool:
    return isinstance(given, str) and ":" in given


def _with_inputs(inner: nn.Module, inputs: Any) -> Model:
    """Return a model with the inputs that a user's function returned: a tensor, a tuple or a mapping of tensors."""
    args = () if isinstance(inputs, Mapping) else tuple(inputs) if isinstance(inputs, tuple) else (inputs,)
    kwargs = dict(inputs) if isinstance(inputs, Mapping) else {}
    tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
    x = next((tensor for tensor in tensors if tensor.is_floating_point()), None)
    if x is None:
        raise Unresolved("inputs must hold a tensor of floating-point numbers, such as pixels or embeddings")
    return Model(inner, tuple(x.shape[1:]), *_with_x(args, kwargs, x), batch=x.shape[0])


def _first(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
    return next((value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)), None)


def _with_x(args: tuple[Any, ...], kwargs: dict[str, Any], x: Tensor | None = None) -> Any:
    """Return arguments with x, by default their first tensor, replaced by what marks its place."""
    x = _first(args, kwargs) if x is None else x
    return changed((args, kwargs), lambda value: Place.X if value is x else value)


def _constructed(name: str, construct: Callable[[], Any]) -> Any:
    try:
        return construct()
    except Unresolved:
        raise
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise Unresolved(f"model {name!r} can't be made: {reason}") from error


def _unknown(library_name: str, name: str, names: Iterable[str]) -> str:
    every = list(names)
    near = difflib.get_close_matches(name, every, n=3)
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    return f"{library_name} has no model {name!r}; expected one of its {len(every)} names{hint}"


SOURCES: Mapping[str, Callable[[str, Options], Model]] = {
    "timm": _timm,
    "torchvision": _torchvision,
    "transformers": _transformers,
}
