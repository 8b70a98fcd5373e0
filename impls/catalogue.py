"""All implementations that the suite ships, and the grammar of names.

An entry has all facts about an implementation: its adapter, the layers that it supports, its style in pictures, the
kernel that it must run. Examples of names are `sdpa`, `module:attribute`, `online[block_tokens=64]` and `timm:model`.
This module imports no torch, so planning and reading results may import it.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

Dash = tuple[float, ...]
"""The lengths of dashes and gaps, alternating, in line widths; empty for a solid line."""

SOLID: Dash = ()
DASHED: Dash = (4, 1.6)
DOTTED: Dash = (1.2, 1.4)
DASH_DOT: Dash = (5, 1.4, 1.2, 1.4)
DASH_DOT_DOT: Dash = (5, 1.3, 1.2, 1.3, 1.2, 1.3)
LONG: Dash = (8, 2)

NAME = re.compile(r"(?P<base>[^\[\]]+)(?:\[(?P<options>.*)\])?")
OPTION = re.compile(r"\s*(?P<key>[A-Za-z_]\w*)\s*=\s*(?P<value>[^=]+?)\s*")
OPENING, CLOSING = "([{", ")]}"

CORE_KEYWORDS = {
    "attn_mask": "a mask tensor",
    "dropout_p": "dropout",
    "mask": "a causal mask",
    "enable_gqa": "fewer key heads than query heads",
}
"""Keywords by which a layer asks for a feature and an attend declares that it has it, with words for messages.

These keywords can't be options of a name.
"""

PACKING = "packing"
"""The keyword by which an attend declares that it takes packed items: it gets an `impls.packing.Packing`, and queries,
keys and values `[1, H, T, D]` with the tokens of all items."""

FIXED = "fixed"
"""The value of a layer's `lengths` if all items have the same length."""

NO_MASK, CAUSAL = "none", "causal"
"""The values of a layer's `mask`; causal is a value of the keyword `mask`."""

GIVEN, LEARNED = "given", "learned"
"""The biases of the layer `core`, without and with a gradient."""

PADDING = "padding"
"""The word for a model's mask that hides the same keys from all queries and heads of an item."""

BLOCK_TOKENS = 128
"""The default keys per block of `online`: a block of scores is far smaller than N², and the matrix product is still
large enough to be fast."""

KEY_SHARE = 8
"""The factor by which queries and keys of ConvSelfAttention are narrower than values."""

SOURCES = ("timm", "torchvision", "transformers")
"""The libraries whose models can be named, as in `timm:vit_small_patch16_224`."""

ALIASES: Mapping[str, str] = MappingProxyType({
    **dict.fromkeys(
        ("dim", "dims", "in_dim", "dim_in", "input_dim", "query_dim", "in_features"),
        "token_len",
    ),
    **dict.fromkeys(
        ("chan", "embed_dim", "embed_dims", "embedding_dim", "emb_dim", "emb_size", "embedding_size", "d_model",
        "model_dim", "hidden_size", "n_embd", "n_state", "dim_v"),
        "channels",
    ),
    **dict.fromkeys(("heads", "n_heads", "n_head", "nhead", "nheads", "head_num", "num_attention_heads"),
        "num_heads"),
    **dict.fromkeys(("seq_len", "seq_length", "sequence_length", "n_tokens"),
        "num_tokens"),
    "dim_k": "key_channels",
    "img_size": "image_size",
})  # fmt: skip
"""Other names of constructor parameters for columns of a point."""

WIDTHS = ("token_len", "channels")
"""The columns of the input and output widths; a name that gives one gives both."""

LITERALS = "a value in brackets is a number, a text, a tuple, a list, None, True or False"

RULE = "a name with options must read name[option=value,option=value]"


@dataclass(frozen=True)
class Style:
    """The style of an implementation in pictures; `colour` is `#rrggbb`, `marker` a matplotlib marker."""

    colour: str
    dash: Dash
    marker: str
    hollow: bool = False


ALL, ONE = "all", "one"

VALUES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "gqa": ("built-in", "repeat"),
    "mode": ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"),
})  # fmt: skip
"""The allowed values of options that have a fixed set."""


@dataclass(frozen=True)
class Entry:
    """One implementation.

    `adapter` is `module:attribute` in `impls`; with a leading dot, in a package beside `impls`. The command `list`
    prints `meaning` and `supports`.
    `layers` are the class names of the layers for which it is written; empty if it works for all.
    `options` maps each option that its name may have, as in `online[block_tokens=64]`, to its meaning.
    `compiles` is true if torch.compile must make at least one graph.
    `kernel` must be part of the name of a kernel that ran; empty if any kernel may run.
    `packages` are the distributions besides torch that it needs; their versions are recorded. `source` says how to get
    them if pip can't.
    If it `keeps_core`, each call moves its process back to the core on which it was built.
    `on_gpu` is true if it needs a GPU. `flash` is the FlashAttention that torch's registry must use for it.
    If it `packs`, it takes packed items, without padding.
    `function` is the function of torch or a package that it calls, `module:attribute`, which is rejected as a name.
    `scores` says for how many heads it always holds the attention scores at once: ALL, ONE, or empty if it may hold
    none.
    """

    adapter: str
    meaning: str
    style: Style
    supports: str = "everywhere"
    layers: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    compiles: bool = False
    kernel: str = ""
    packages: tuple[str, ...] = ()
    source: str = ""
    keeps_core: bool = False
    on_gpu: bool = False
    flash: str = ""
    packs: bool = False
    function: str = ""
    scores: str = ""

    def refusal(self, layer: str) -> str:
        """Return why it can't compute a layer of this class, empty if it may; `layer` is empty for other packages."""
        if not self.layers or layer in self.layers:
            return ""
        return NOT_PACKED if self.packs else NOT_WRITTEN


NOT_PACKED = "this implementation takes packed items, which only core, attention and vit have"

NOT_WRITTEN = "this implementation replaces the whole layer, and is not written for this one"

_MHA_LAYERS = ("ViTAttention", "Attention")
_PACKED_LAYERS = ("ViTAttention", "Attention", "Core")
_PACKED = "no context, attn_bias, rope or windows"
_MHA = "token_len = channels, default qk_scale; no context, attn_bias, qk_norm, rope, grouped heads or windows"
_GQA = {"gqa": "repeat copies keys and values for each query head; built-in (default) passes enable_gqa=True"}
_MODE = "mode of torch.compile, such as max-autotune"
_IN_INFERENCE = "inference, if installed"
_ONNX = ("onnxruntime", "onnx", "onnxscript")
_HALF = "GPU, bfloat16 and float16, if installed"
_HOPPER = "build the folder hopper of Dao-AILab/flash-attention"

IMPLEMENTATIONS: Mapping[str, Entry] = MappingProxyType({
    "eager": Entry("attend.eager:adapt",
        "the plain formula: a matrix product, softmax, a matrix product", Style("#1a1a1a", SOLID, "o"),
        scores=ALL),
    "as_is": Entry("contract:as_is", "the layer or model unchanged, with its own attention",
        Style("#8020f0", SOLID, "*", hollow=True)),
    "graph": Entry(".bench.modules.graph.running:unchanged",
        "the module's traced graph, unchanged; a control that shows the effect of tracing alone",
        Style("#5c4b8a", DOTTED, "<", hollow=True)),
    "compiled": Entry("torch_compile:adapt", "torch.compile of the unchanged layer or model",
        Style("#b984f7", DASHED, "X", hollow=True), supports="if torch.compile has a compiler", options={"mode": _MODE},
        compiles=True),
    "manual": Entry("attend.manual:adapt", "the plain formula with the softmax written out, one head at a time",
        Style("#d55e00", DASH_DOT, "^"), scores=ONE),
    "online": Entry("attend.online:adapt", "online softmax over blocks of keys; memory is linear in tokens",
        Style("#009e73", LONG, "D"), options={"block_tokens": "keys per block"}),
    "sdpa": Entry("attend.sdpa:adapt", "scaled_dot_product_attention; torch chooses the backend",
        Style("#0072b2", SOLID, "v"), options=_GQA, function="torch.nn.functional:scaled_dot_product_attention"),
    "sdpa_math": Entry("attend.sdpa:adapt_math", "scaled_dot_product_attention, only the math backend (not fused)",
        Style("#332288", DASH_DOT, "<"), kernel="scaled_dot_product_attention_math", scores=ALL, options=_GQA),
    "sdpa_flash": Entry("attend.sdpa:adapt_flash", "scaled_dot_product_attention, only the flash backend",
        Style("#44aa99", SOLID, ">"),
        supports="not conv; self only if key_channels = channels",
        kernel="scaled_dot_product_flash_attention", options=_GQA),
    "sdpa_efficient": Entry("attend.sdpa:adapt_efficient",
        "scaled_dot_product_attention, only the memory-efficient backend", Style("#882255", LONG, "h"),
        supports="GPU", kernel="scaled_dot_product_efficient_attention", options=_GQA),
    "sdpa_cudnn": Entry("attend.sdpa:adapt_cudnn", "scaled_dot_product_attention, only the cuDNN backend",
        Style("#777711", DASH_DOT_DOT, "p"), supports="GPU", kernel="scaled_dot_product_cudnn_attention",
        options=_GQA),
    "flex": Entry("attend.flex:adapt", "compiled flex_attention; the rest of the layer is eager",
        Style("#cc79a7", SOLID, "d"), supports="inference; other modes on a GPU only", compiles=True),
    "varlen": Entry("attend.packed:adapt_varlen", "packed items, torch.nn.attention.varlen (FlashAttention)",
        Style("#0b7a75", SOLID, "P", hollow=True), supports=f"GPU, bfloat16 and float16; {_PACKED}",
        layers=_PACKED_LAYERS, packs=True),
    "flex_packed": Entry("attend.packed:adapt_flex", "packed items, compiled flex_attention with a document mask",
        Style("#d65db1", DASHED, "*"), supports=f"inference; other modes on a GPU only; {_PACKED}",
        layers=_PACKED_LAYERS, packs=True, compiles=True),
    "nested": Entry("attend.packed:adapt_nested",
        "packed items, scaled_dot_product_attention on jagged nested tensors",
        Style("#9b870c", LONG, "$n$"), supports=_PACKED, layers=_PACKED_LAYERS, packs=True),
    "loop": Entry("attend.packed:adapt_loop", "packed items, scaled_dot_product_attention on one item at a time",
        Style("#c44536", DOTTED, ">", hollow=True), supports=_PACKED, layers=_PACKED_LAYERS, packs=True),
    # lighter than a tint of eager's black, which looks like online's green to people without green cones
    "compiled_eager": Entry("torch_compile:adapt_eager", "torch.compile of eager",
        Style("#a8a8a8", DASHED, "o", hollow=True), supports="if torch.compile has a compiler", options={"mode": _MODE},
        compiles=True),
    "compiled_sdpa": Entry("torch_compile:adapt_sdpa", "torch.compile of sdpa",
        Style("#73b1d5", DASHED, "v", hollow=True), supports="if torch.compile has a compiler", options={"mode": _MODE},
        compiles=True),
    "mha": Entry("whole.mha:adapt", "torch.nn.MultiheadAttention with the layer's weights",
        Style("#e69f00", DASH_DOT_DOT, "P"), supports=_MHA, layers=_MHA_LAYERS),
    "mha_weights": Entry("whole.mha:adapt_weights", "mha that also computes the attention weights (need_weights=True)",
        Style("#8c6100", DOTTED, "X"), supports=_MHA, layers=_MHA_LAYERS, scores=ALL),
    "openvino": Entry("runtimes.openvino:OpenVINO", "the layer in OpenVINO, at the dtype of the point",
        Style("#661100", SOLID, "8"), supports=f"{_IN_INFERENCE}, CPU", packages=("openvino",), keeps_core=True),
    "onnxruntime": Entry("runtimes.onnxruntime:ONNXRuntime", "the layer exported to ONNX Runtime",
        Style("#117733", SOLID, "H"), supports=_IN_INFERENCE, packages=_ONNX),
    "sdpa_fa3": Entry("attend.sdpa:adapt_flash", "scaled_dot_product_attention with FlashAttention 3",
        Style("#6699cc", SOLID, "^", hollow=True), supports=_HALF, packages=("flash-attn-3",), source=_HOPPER,
        on_gpu=True, flash="FA3", kernel="FlashAttnFwdSm90", options=_GQA),
    "sdpa_fa4": Entry("attend.sdpa:adapt_flash", "scaled_dot_product_attention with FlashAttention 4",
        Style("#003f7f", SOLID, "p", hollow=True), supports=_HALF, packages=("flash-attn-4",), on_gpu=True,
        flash="FA4", kernel="flash_attncute", options=_GQA),
    "flash_attn": Entry("attend.packages:flash_attn", "FlashAttention 2 from the package flash-attn",
        Style("#999933", SOLID, "d", hollow=True), supports=_HALF, packages=("flash-attn",), on_gpu=True,
        function="flash_attn:flash_attn_func"),
    "flash_attn_3": Entry("attend.packages:flash_attn_3", "FlashAttention 3 from the package flash-attn-3, for Hopper",
        Style("#b0413e", SOLID, "$3$"), supports=_HALF, packages=("flash-attn-3",), source=_HOPPER, on_gpu=True,
        function="flash_attn_interface:flash_attn_func"),
    "flash_attn_4": Entry("attend.packages:flash_attn_4", "FlashAttention 4 from the package flash-attn-4, in CuTe",
        Style("#3b5bab", SOLID, "$4$"), supports=_HALF, packages=("flash-attn-4",), on_gpu=True,
        function="flash_attn.cute:flash_attn_func"),
    "flash_attn_varlen": Entry("attend.packages:flash_attn_varlen",
        "packed items, FlashAttention 2 from the package flash-attn", Style("#6f7200", DASHED, "$2$"),
        supports=f"{_HALF}; {_PACKED}", layers=_PACKED_LAYERS, packages=("flash-attn",), on_gpu=True, packs=True,
        function="flash_attn:flash_attn_varlen_func"),
    "xformers": Entry("attend.packages:xformers", "memory_efficient_attention from xformers",
        Style("#8a5a00", DASH_DOT, "x"), supports="GPU, if installed", packages=("xformers",), on_gpu=True,
        function="xformers.ops:memory_efficient_attention"),
})  # fmt: skip
"""The shipped implementations by name, in the order in which they are listed."""

OWN = Entry("", "a user's own", Style("", SOLID, ""))
"""The entry of any implementation that a user brings."""

GRAPH = "graph"
"""The implementation that runs a module as the graph of its call, and the word for cores replaced in a graph."""

COMPILED = "compiled"
"""The name of the compiled layer or model as it is, and the prefix of names that compile another implementation."""


def advised(device: str, *, compiled: bool) -> list[str]:
    """Return the implementations that `advise` tries on a kind of device, cpu or cuda, in order; `compiled` or not."""
    if compiled:
        return ["compiled", "compiled_sdpa", "compiled_eager"]
    on_gpu = ["sdpa_efficient", "sdpa_cudnn"] if device == "cuda" else []
    return ["sdpa", "eager", "sdpa_flash", "sdpa_math", *on_gpu]


@dataclass(frozen=True)
class Name:
    """The parsed name of an implementation, of a layer, or of a module from any package.

    `base` is the part before the brackets, `options` are inside them.
    """

    text: str
    base: str
    options: Mapping[str, Any]

    @property
    def module(self) -> str:
        """The part before the colon: a user's module, or a library of SOURCES."""
        return self.base.partition(":")[0]

    @property
    def attribute(self) -> str:
        """The part after the colon: an attribute of a user's module, or a library's model."""
        return self.base.partition(":")[2]

    @property
    def input(self) -> str:
        """The option `input` of a module's name, sizes or `module:function`; empty without one."""
        return str(self.options.get("input", ""))

    @property
    def shapes_itself(self) -> bool:
        """Whether the name of a module, not the columns, decides the shapes of its inputs."""
        return self.module in SOURCES or "input" in self.options

    @property
    def is_model(self) -> bool:
        """Whether it is a whole model with its own input, so that tokens and widths say less about it."""
        return ":" in self.base and self.shapes_itself and "at" not in self.options

    @property
    def is_own(self) -> bool:
        """Whether an implementation isn't shipped, as `module:attribute`."""
        return self.base not in IMPLEMENTATIONS

    @property
    def entry(self) -> Entry:
        """The entry of an implementation; OWN if it isn't shipped."""
        return IMPLEMENTATIONS.get(self.base, OWN)

    @property
    def compiled_from(self) -> str:
        """The implementation that it compiles, such as `sdpa` for `compiled_sdpa`; else empty."""
        return self.base.removeprefix(f"{COMPILED}_") if self.base.startswith(f"{COMPILED}_") else ""


@cache
def name_of(text: str) -> Name:
    """Parse a name with its options; raises ValueError if it breaks the grammar.

    The value of an option is a Python literal (number, text, tuple, list, None, True or False), `true` or `false`; any
    other text is taken as a string.
    """
    match = NAME.fullmatch(text)
    parts = split(match["options"]) if match and match["options"] is not None else []
    given = [OPTION.fullmatch(part) for part in parts]
    if match is None or None in given:
        raise ValueError(f"{RULE}, got {text!r}")
    options: dict[str, Any] = {}
    for option in filter(None, given):
        if option["key"] in options:
            raise ValueError(f"{text!r} gives the option {option['key']} twice")
        try:
            options[option["key"]] = _value(option["value"])
        except ValueError as error:
            raise ValueError(f"{text!r}: {error}") from None
    return Name(text, match["base"], MappingProxyType(options))


def with_option(name: str, option: str, value: str) -> str:
    """Return a name with an option added, or its value replaced."""
    base, _, inside = name.removesuffix("]").partition("[")
    options = {part.partition("=")[0].strip(): part for part in split(inside) if part}  # texts keep their quotes
    return f"{base}[{','.join({**options, option: f'{option}={value}'}.values())}]"


def split(names: str) -> list[str]:
    """Return the parts of a comma-separated list; commas inside brackets or quotes don't separate."""
    parts, depth, quote = [""], 0, ""
    for each in names:
        if quote or each in "'\"":
            quote = "" if each == quote else quote or each
        depth += (not quote) * ((each in OPENING) - (each in CLOSING))
        if each == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += each
    return [part.strip() for part in parts]


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        if text[0] in OPENING + "'\"":
            raise ValueError(f"{text} can't be read: {LITERALS}") from None
        return text
    if isinstance(value, set | dict | bytes):
        raise ValueError(f"{text} can't be read: {LITERALS}")
    return value
