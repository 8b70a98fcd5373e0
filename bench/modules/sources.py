"""Modules by their names: `timm:vit_small_patch16_224`, `package.module:Class[heads=4]`, `vit`; nothing is downloaded.

A name leads to a library's model, to a class or function from any package, or to a layer of the suite. Options in
brackets go to the constructor, except `input` (the shape with its batch, as 8x3x224x224, or `module:function`), `at`
(the path of the submodule to measure, with the input that it gets there), and a text model's `tokens` and `padding`.
"""

import contextlib
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
from torch import nn

from bench.modules.inputs import Arguments, by_function, is_function
from bench.modules.wrapper import X
from impls.contract import Unresolved, Unsupported

TOKENS = 128
"""The default number of tokens of a text; fewer if the model takes no more."""

TORCHVISION_OPERATORS = ("nms", "qnms")
"""The operators that importing torchvision needs, which are missing if it was built for another torch."""

PINS = "" if __name__.startswith("attention_bench.") else " -c constraints.txt"
"""The option of pip for pinned versions, which only a checkout has."""

INSTALL = f"pip install{PINS} timm torchvision transformers"
"""The command that installs the libraries; `nox -s advise` runs it for you."""

Options = dict[str, Any]

Source = tuple[nn.Module, tuple[int, ...], Arguments | None]
"""A model, the usual shape of one item of its input, and the arguments of its call, None for x alone."""


def library(name: str) -> Any:
    """Return an imported library; raises Unresolved with the command that installs it."""
    with contextlib.suppress(ModuleNotFoundError):
        try:
            importlib.import_module("torchvision")
        except RuntimeError as error:
            if not mended(str(error)):
                raise
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in (name, "torchvision"):
            raise Unresolved(f"{name} can't be imported: {error}") from error
        raise Unresolved(f"{error.name} is not installed; install it with: {INSTALL}") from None


def mended(error: str) -> bool:
    """Declare torchvision's operators if the error says that one is missing; return whether it did.

    Importing torchvision needs them. They are missing if it was built for another build of torch; no model calls them.
    """
    return "operator torchvision::" in error and bool(_declared())


@functools.cache
def _declared() -> torch.library.Library:
    """Declare the operators, for as long as the result lives."""
    declared = torch.library.Library("torchvision", "FRAGMENT")
    for operator in TORCHVISION_OPERATORS:
        declared.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return declared


def _timm(name: str, _given: Any, options: Options) -> Source:
    timm = library("timm")
    if not timm.is_model(name):
        raise Unresolved(_unknown("timm", name, timm.list_models()))
    size = options.get("img_size")
    inner = constructed(name, lambda: timm.create_model(name, pretrained=False, **options))
    channels, *sides = inner.default_cfg["input_size"]
    sides = sides if size is None else [size, size] if isinstance(size, int) else [*size]
    return inner, (options.get("in_chans", channels), *sides), None


def _torchvision(name: str, given: Any, options: Options) -> Source:
    models = library("torchvision").models
    if name not in models.list_models():
        raise Unresolved(_unknown("torchvision", name, models.list_models()))
    if "weights_backbone" in inspect.signature(models.get_model_builder(name)).parameters:
        options.setdefault("weights_backbone", None)  # else it would be downloaded
    inner = constructed(name, lambda: models.get_model(name, weights=None, **options))
    weights = models.get_model_weights(name)
    of_weights = [getattr(weights.DEFAULT.transforms, "keywords", {}).get("crop_size")] if len(weights) else []
    side = next((each for each in (getattr(inner, "image_size", None), *of_weights) if isinstance(each, int)), None)
    if side is None and given is None:
        raise Unresolved(_no_size(f"torchvision:{name}", options))
    return inner, (3, side or 0, side or 0), None


def _transformers(name: str, given: Any, options: Options) -> Source:
    transformers = library("transformers")
    tokens, padding = options.pop("tokens", None), options.pop("padding", None)
    config = _config(transformers, name, options)
    inner = constructed(f"AutoModel of {name}", lambda: transformers.AutoModel.from_config(config))
    if is_function(given):
        return inner, (), None
    if inner.main_input_name == "pixel_values":
        side = getattr(config, "image_size", None)
        if side is None and given is None:
            raise Unresolved(_no_size(f"transformers:{name}", options))
        height, width = side if isinstance(side, list | tuple) else (side, side)
        return inner, (getattr(config, "num_channels", 3), height, width), ((), {"pixel_values": X})
    if inner.main_input_name != "input_ids" or "inputs_embeds" not in inspect.signature(inner.forward).parameters:
        raise Unresolved(
            f"transformers:{name} takes {inner.main_input_name}, which is neither an image nor a text; write "
            f"{by_function(f'transformers:{name}')}"
        )
    if given is not None:
        raise Unresolved(
            f"transformers:{name} takes its input as [tokens=64,padding=8] or [input=mymodel:inputs], not as sizes"
        )
    most = max(0, getattr(config.get_text_config(), "max_position_embeddings", None) or 0) or math.inf
    tokens, padding = int(min(TOKENS, most) if tokens is None else tokens), int(padding or 0)
    if not 0 <= padding < tokens <= most:
        raise Unresolved(f"transformers:{name}: padding < tokens <= {most} must hold, got {padding} and {tokens}")
    kwargs: dict[str, Any] = {"inputs_embeds": X}
    if config.is_encoder_decoder:
        kwargs["decoder_inputs_embeds"] = X
    if padding:
        kwargs["attention_mask"] = (torch.arange(tokens)[None] < tokens - padding).long()
    return inner, (tokens, inner.get_input_embeddings().embedding_dim), ((), kwargs)


def _config(transformers: Any, name: str, options: Options) -> Any:
    """Return a configuration of transformers, by the name of its class or from a file or folder."""
    if not (name.endswith(".json") or "/" in name):
        kind = getattr(transformers, name, None)
        if not (inspect.isclass(kind) and issubclass(kind, transformers.PretrainedConfig)):
            names = [each for each in dir(transformers) if each.endswith("Config")]
            raise Unresolved(_unknown("transformers", name, names) + ", or a config.json")
        return constructed(name, partial(kind, **options))
    path = Path(name, "config.json") if Path(name).is_dir() else Path(name)
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Unresolved(f"transformers:{path} can't be read as a config.json: {error}") from None
    named = values.pop("model_type", "")
    return constructed(str(path), lambda: transformers.AutoConfig.for_model(named, **{**values, **options}))


def constructed(name: str, construct: Callable[[], Any]) -> Any:
    """Call a constructor and return its result; raises Unresolved, with the constructor's error, if it fails."""
    try:
        return construct()
    except (Unresolved, Unsupported):
        raise
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        if isinstance(error, OSError):  # includes failed downloads
            reason += "; nothing is downloaded here, so turn off pretrained weights, for example by [pretrained=False]"
        raise Unresolved(f"{name} can't be constructed: {reason}") from error


def _no_size(name: str, options: Options) -> str:
    inside = "".join(f"{key}={value}," for key, value in options.items())
    return f"{name} has no default input size; write its shape, batch first, such as {name}[{inside}input=8x3x512x512]"


def _unknown(library_name: str, name: str, names: Iterable[str]) -> str:
    every = list(names)
    near = difflib.get_close_matches(name, every, n=3)
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    return f"{library_name} has no model {name!r}; expected one of its {len(every)} names{hint}"


SOURCES: Mapping[str, Callable[..., Source]] = {
    "timm": _timm,
    "torchvision": _torchvision,
    "transformers": _transformers,
}
"""For each library, the function that makes a model from its name, the input given in that name, and options."""
