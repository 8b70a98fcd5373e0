"""A sweep file of a model: its distinct attention layers, or their cores as points of the layer `core`."""

import dataclasses
import json
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from bench.analyse.advice import Advice, LayerKind
from bench.analyse.rows import grouped
from bench.plan.case import AS_IS, COLUMNS, Point
from bench.plan.errors import WrongRequest
from bench.plan.grid import DEFAULTS, expand
from bench.plan.invocation import short
from bench.plan.layers.layer import NONE
from bench.plan.layers.module import of_core
from bench.plan.lengths import LIST
from impls.catalogue import CAUSAL, GIVEN, IMPLEMENTATIONS, LEARNED, PADDING, name_of, with_option

LAYER_COLUMNS = ("layer", "device", "dtype", "mode", "batch", "num_tokens", "channels", "num_heads", "threads")
"""The columns that a sweep of layers gives."""

OF_CORES = ("eager", "sdpa")
"""The implementations of a sweep of cores."""

PACKED = tuple(name for name, entry in IMPLEMENTATIONS.items() if entry.packs and not entry.packages)
"""Those that it has besides if items have different lengths."""

WIDTH = 120
"""The characters of a line of a comment."""

Core = Mapping[str, Any]
"""A core as a look reports it."""


def of_layers(answers: Sequence[Advice]) -> str:
    """Return a sweep file of the distinct layers of a model, with the settings that it has."""
    names = dict.fromkeys(name for each in answers for name in each.working)
    layers = {(each.point, kind.path): _layer(each.point, kind) for each in answers for kind in each.kinds}
    grids = [_grid({name: getattr(layer, name) for name in LAYER_COLUMNS}) for layer in layers.values()]
    return _file("layers", [AS_IS, *names], grids)


def of_cores(answers: Sequence[Advice]) -> str:
    """Return a sweep file with each distinct core once; comments say which layers have it, and what is left out.

    Raises WrongRequest if the layer `core` can express none of them.
    """
    grids: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for advice in answers:
        by_obstacle = grouped(advice.first["cores"], obstacle)
        as_grid = partial(_core_grid, advice.point)
        for grid, cores in grouped(by_obstacle.pop("", []), as_grid).items():
            masks = dict.fromkeys(f"mask {core['mask']}" for core in cores if core["mask"])
            grids.setdefault(grid, _comment(cores, ", ".join(masks)))
        by_obstacle |= grouped(advice.first["others"], itemgetter("reason"))
        left_out |= {_comment(cores, reason, "left out: "): reason for reason, cores in by_obstacle.items()}
    if not grids:
        raise WrongRequest(f"the layer core can express no core of the model: {next(iter(left_out.values()))}")
    packed = PACKED if any(lengths_of(core) for advice in answers for core in advice.first["cores"]) else ()
    return _file("cores", [*OF_CORES, *packed], [*(f"{comment}\n{grid}" for grid, comment in grids.items()), *left_out])


def _file(what: str, implementations: Sequence[str], parts: Iterable[str]) -> str:
    head = (
        f"# the distinct attention {what} of a model, written by `{short()} advise`\n"
        f"implementations = {json.dumps(implementations)}\nbaseline = {json.dumps(implementations[0])}"
    )
    return "\n\n".join([head, *parts]) + "\n"


def _grid(columns: Mapping[str, Any]) -> str:
    return "\n".join(["[[grid]]", *(f"{name} = {json.dumps(value)}" for name, value in columns.items())])


def _layer(model: Point, kind: LayerKind) -> Point:
    """Return the point of a kind of layers by itself; the model's own if it has no layer with a path."""
    name = with_option(model.layer, "at", kind.path) if kind.path else model.layer
    columns = of_core(kind.core, name) if name_of(model.layer).shapes_itself else {}
    return dataclasses.replace(model, layer=name, **columns)


def _comment(cores: Sequence[Core], fact: str, begin: str = "") -> str:
    """Return a comment that names the layers of cores, with a fact about all of them."""
    number = "1 core" if len(cores) == 1 else f"{len(cores)} cores"
    layers = ", ".join(dict.fromkeys(core["layer"] or "the model itself" for core in cores))
    words = f"{begin}{number} of {layers}{f': {fact}' if fact else ''}"
    return textwrap.fill(words, WIDTH, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False)


def _core_grid(model: Point, core: Core) -> str:
    return _grid(core_columns(core, model))


def core_columns(core: Core, model: Point) -> dict[str, Any]:
    """Return the columns of a core at a point of its model, those alone that a sweep must give."""
    (batch, heads, tokens, width), (_, kv_heads, kv_tokens, _), _ = _shapes(core)
    kinds = _kinds(core)
    lengths = lengths_of(core)
    hiding = next((kind for kind in (CAUSAL, PADDING) if kind in kinds and not lengths), NONE)
    bias = next((kind for kind in (LEARNED, GIVEN) if kind in kinds), NONE)
    return {
        "layer": "core",
        "device": model.device,
        "dtype": core["dtype"],
        "mode": model.mode,
        "batch": batch,
        "num_tokens": tokens,
        **({"num_kv_tokens": kv_tokens} if kv_tokens != tokens else {}),
        "channels": heads * width,
        "num_heads": heads,
        **({"num_kv_heads": kv_heads} if kv_heads != heads else {}),
        **({"attn_bias": bias} if bias != NONE else {}),
        **({"mask": hiding} if hiding != NONE else {}),
        **({"lengths": LIST + "+".join(map(str, lengths))} if lengths else {}),
        "threads": model.threads,
    }


def padded_core(advice: Advice) -> Point | None:
    """Return the point of the padded core that takes the most time of those that can be packed; None without one."""
    cores = (kind.core for kind in advice.kinds if lengths_of(kind.core) and not obstacle(kind.core))
    return next((point for core in cores for point in expand(core_columns(core, advice.point), DEFAULTS)), None)


def lengths_of(core: Core) -> tuple[int, ...]:
    """Return the tokens of each item without its padding, the longest first; empty if they can't be packed.

    Else items have the same lengths as queries and as keys, and no bias.
    """
    (batch, _, tokens, _), (_, _, kv_tokens, _), _ = _shapes(core)
    found = [mask.get("lengths", ()) for mask in core["masks"]]  # looks of earlier versions lack them
    if _kinds(core) != {PADDING} or len(found) != 1 or kv_tokens != tokens:
        return ()
    lengths = [*found[0]] * (batch if len(found[0]) == 1 else 1)
    return tuple(sorted(lengths, reverse=True)) if len(lengths) == batch and min(lengths) < tokens else ()


def obstacle(core: Core) -> str:
    """Return why a core can't be a point of the layer `core`, empty if it can."""
    q, k, v = shapes = _shapes(core)
    if not all(len(shape) == len("BHND") for shape in shapes):
        return f"q, k and v have {', '.join(str(len(shape)) for shape in core['shapes'])} dimensions"
    if q[-1] != v[-1]:
        return f"q has a width of {q[-1]}, v of {v[-1]}"
    if k[:-1] != v[:-1] or q[0] != k[0] or q[1] % k[1]:
        return f"q {q}, k {k} and v {v} are not of the same items and groups of heads"
    if core["dtype"] not in COLUMNS["dtype"].choices:
        return f"the dtype is {core['dtype']}"
    if core["dropout"]:
        return f"dropout of {core['dropout']:g}"
    if core.get("sink"):
        return "columns stand beside the scores in the softmax (a sink)"
    if core["obstacle"] and not core["weights_are_used"]:
        return str(core["obstacle"])
    return _obstacle_of_masks(core)


def _obstacle_of_masks(core: Core) -> str:
    hiding = _kinds(core) - {GIVEN, LEARNED}
    if not hiding <= {CAUSAL, PADDING}:
        return f"the mask is neither causal from the upper left corner nor a padding of keys: {core['mask']}"
    if len(hiding) > 1:
        return f"a causal mask and one of keys exclude each other: {core['mask']}"
    q, k, _ = _shapes(core)
    if PADDING in hiding and q[0] == 1 and not lengths_of(core):
        return f"a mask of keys needs a batch of at least 2: {core['mask']}"
    for mask in core["masks"]:
        shape: list[int] = [1] * (len("HNM") - len(mask["shape"])) + mask["shape"]
        *items, heads, queries, keys = shape
        fits = math.prod(items) == 1 and heads in (1, q[1]) and queries in (1, q[2]) and keys in (1, k[2])
        if mask["kind"] in (GIVEN, LEARNED) and not fits:
            return f"the bias is another one for each item or window: {core['mask']}"
    return ""


def _kinds(core: Core) -> set[str]:
    """Return what the masks of a core do."""
    kinds = {mask["kind"] for mask in core["masks"]}
    return {*kinds, CAUSAL} if core["causal"] else kinds


def _shapes(core: Core) -> list[list[int]]:
    """Return the shapes of q, k and v, with items and heads if they lack these."""
    if core.get("heads") and len(core["shapes"][0]) == 3:  # one operator computes the whole layer, of tokens alone
        batch, tokens, channels = core["shapes"][0]
        return [[batch, core["heads"], tokens, channels // core["heads"]]] * 3
    missing = {2: (1, 1), 3: (1,)}  # the heads of three dimensions are among the items, or there are none
    return [[*shape[:-2], *missing.get(len(shape), ()), *shape[-2:]] for shape in core["shapes"]]
