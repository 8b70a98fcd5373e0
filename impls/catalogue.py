"""Every implementation that the suite ships, declared once, and the grammar of names.

An entry has all facts about an implementation: its adapter, the layers that it supports, its style in pictures, the
kernel that it must run. Names are such as `sdpa`, `module:attribute`, `online[block_tokens=64]`, and those of models.
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
    "enable_gqa": "fewer heads of keys than of queries",
}
"""What a layer may ask an attend for, by the keyword with which the attend declares that it can compute it.

These keywords are no options of a name.
"""

PACKING = "packing"
"""The keyword by which an attend says that it takes the tokens of all items packed one after the other: it gets an
`impls.packing.Packing`, and queries, keys and values `[1, H, T, D]` with the tokens of all items."""

FIXED = "fixed"
"""The value of a layer's `lengths` if all of its items have the same."""

NO_MASK, CAUSAL = "none", "causal"
"""The values of a layer's `mask`; causal is a value of the keyword `mask`."""

GIVEN, LEARNED = "given", "learned"
"""The biases of the layer `core`, without and with a gradient."""

PADDING = "padding"
"""What a mask of a model is that hides the same keys from all queries and heads of an item."""

BLOCK_TOKENS = 128
"""The keys per block of `online` if its name says no other number: a block of scores stays far below N², and the matrix
product is still large enough to be fast."""

KEY_SHARE = 8
"""By this factor queries and keys of ConvSelfAttention are narrower than values."""

SOURCES = ("timm", "torchvision", "transformers")
"""The libraries whose models have a name: `timm:vit_small_patch16_224`."""

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
"""Other names that a constructor's parameters have for columns of a point."""

WIDTHS = ("token_len", "channels")
"""The columns of the widths at input and output; a name that gives one gives both."""

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
    "build": ("batch", "call"),
    "mode": ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"),
})  # fmt: skip
"""The values of the options that have only some."""


@dataclass(frozen=True)
class Entry:
    """One implementation.

    `adapter` is `module:attribute` in `impls`, or beside it after a dot. The command `list` prints `meaning` and
    `supports`.
    `layers` are the class names of the only layers that it is written for; empty if it is for all.
    `options` maps each option that its name may carry, as in `online[block_tokens=64]`, to its meaning.
    `compiles` is true if torch.compile must make at least one graph of it.
    `kernel` must be part of the name of a kernel that ran; empty if any kernel may run.
    `packages` are the distributions beside torch that it needs; their versions are recorded. `source` says how to get
    them if pip can't.
    One that `keeps_core` moves its process back to the core on which it was built, whenever it is called.
    `on_gpu` is true if it can run on a GPU alone. `flash` is the FlashAttention that torch's registry must use for it.
    One that `packs` takes packed items, without padding.
    `function` is that of torch or of a package which it calls, `module:attribute`; as a name it is refused.
    `scores` says of how many heads it holds the attention scores at once, whatever the layer and the mode: ALL, ONE, or
    empty if it may hold none.
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
        """Return why it can never compute the layer of this class name, empty for a stranger's; empty if it may."""
        if not self.layers or layer in self.layers:
            return ""
        return NOT_PACKED if self.packs else NOT_WRITTEN


NOT_PACKED = "this implementation takes packed items, which only core, attention and vit have"

NOT_WRITTEN = "this implementation replaces the whole layer, and is not written for this one"

_MHA_LAYERS = ("ViTAttention", "Attention")
_PACKED_LAYERS = ("ViTAttention", "Attention", "Core")
_PACKED = "if items have different lengths"
_MHA = (
    "if token_len = channels and qk_scale is the default, without context, bias, norms, rotary, fewer kv heads, windows"
)
_GQA = {"gqa": "repeat copies fewer heads of keys for all heads of queries; else torch's enable_gqa takes them"}
_MODE = "the mode of torch.compile, such as max-autotune"
_IN_INFERENCE = "in inference, if installed"
_ONNX = ("onnxruntime", "onnx", "onnxscript")
_HALF = "on a GPU in bfloat16 and float16, if installed"
_HOPPER = "build the folder hopper of Dao-AILab/flash-attention"

IMPLEMENTATIONS: Mapping[str, Entry] = MappingProxyType({
    "eager": Entry("attend.eager:adapt",
        "as the source writes it: two matrix products with a softmax between them", Style("#1a1a1a", SOLID, "o"),
        scores=ALL),
    "as_is": Entry("contract:as_is", "the layer or model as it is: its own core, its library's choice",
        Style("#8020f0", SOLID, "*", hollow=True)),
    "graph": Entry(".bench.modules.graph.running:unchanged",
        "the module's graph, traced by torch, unchanged: a control that says what tracing alone changes",
        Style("#5c4b8a", DOTTED, "<", hollow=True)),
    "compiled": Entry("torch_compile:adapt", "torch.compile of the layer or model as it is",
        Style("#b984f7", DASHED, "X", hollow=True), supports="if there is a compiler", options={"mode": _MODE},
        compiles=True),
    "manual": Entry("attend.manual:adapt", "the articles' steps one by one, head by head",
        Style("#d55e00", DASH_DOT, "^"), scores=ONE),
    "online": Entry("attend.online:adapt", "softmax over blocks of keys, memory linear in tokens",
        Style("#009e73", LONG, "D"), options={"block_tokens": "keys per block"}),
    "sdpa": Entry("attend.sdpa:adapt", "scaled_dot_product_attention, PyTorch's choice of backend",
        Style("#0072b2", SOLID, "v"), options=_GQA, function="torch.nn.functional:scaled_dot_product_attention"),
    "sdpa_math": Entry("attend.sdpa:adapt_math", "scaled_dot_product_attention, the unfused backend alone",
        Style("#332288", DASH_DOT, "<"), kernel="scaled_dot_product_attention_math", scores=ALL, options=_GQA),
    "sdpa_flash": Entry("attend.sdpa:adapt_flash", "scaled_dot_product_attention, FlashAttention alone",
        Style("#44aa99", SOLID, ">"),
        supports="if queries, keys and values have one width, which conv has not, and self may not have",
        kernel="scaled_dot_product_flash_attention", options=_GQA),
    "sdpa_efficient": Entry("attend.sdpa:adapt_efficient",
        "scaled_dot_product_attention, the memory-efficient backend alone", Style("#882255", LONG, "h"),
        supports="on a GPU", kernel="scaled_dot_product_efficient_attention", options=_GQA),
    "sdpa_cudnn": Entry("attend.sdpa:adapt_cudnn", "scaled_dot_product_attention, cuDNN's backend alone",
        Style("#777711", DASH_DOT_DOT, "p"), supports="on a GPU", kernel="scaled_dot_product_cudnn_attention",
        options=_GQA),
    "flex": Entry("attend.flex:adapt", "flex_attention, compiled; the rest of the layer eager",
        Style("#cc79a7", SOLID, "d"), supports="in inference; in other modes on a GPU alone", compiles=True),
    "varlen": Entry("attend.packed:adapt_varlen", "packed items by torch.nn.attention.varlen, FlashAttention for them",
        Style("#0b7a75", SOLID, "P", hollow=True), supports=f"{_PACKED}, on a GPU in bfloat16 and float16",
        layers=_PACKED_LAYERS, packs=True),
    "flex_packed": Entry("attend.packed:adapt_flex", "packed items by flex_attention, compiled, with a document mask",
        Style("#d65db1", DASHED, "*"), supports=f"{_PACKED}, in inference; in other modes on a GPU alone",
        layers=_PACKED_LAYERS, packs=True, compiles=True,
        options={"build": "when the mask is built: batch (once for all layers of a model, the default) or call"}),
    "nested": Entry("attend.packed:adapt_nested",
        "packed items by scaled_dot_product_attention of nested tensors with the jagged layout",
        Style("#9b870c", LONG, "$n$"), supports=_PACKED, layers=_PACKED_LAYERS, packs=True),
    "loop": Entry("attend.packed:adapt_loop", "packed items one by one by scaled_dot_product_attention",
        Style("#c44536", DOTTED, ">", hollow=True), supports=_PACKED, layers=_PACKED_LAYERS, packs=True),
    # lighter than a tint of eager's black, which people without green cones take for the green of online
    "compiled_eager": Entry("torch_compile:adapt_eager", "torch.compile of eager",
        Style("#a8a8a8", DASHED, "o", hollow=True), supports="if there is a compiler", options={"mode": _MODE},
        compiles=True),
    "compiled_sdpa": Entry("torch_compile:adapt_sdpa", "torch.compile of sdpa",
        Style("#73b1d5", DASHED, "v", hollow=True), supports="if there is a compiler", options={"mode": _MODE},
        compiles=True),
    "mha": Entry("whole.mha:adapt", "torch.nn.MultiheadAttention with the layer's weights",
        Style("#e69f00", DASH_DOT_DOT, "P"), supports=_MHA, layers=_MHA_LAYERS),
    "mha_weights": Entry("whole.mha:adapt_weights", "the same, with the attention weights computed too",
        Style("#8c6100", DOTTED, "X"), supports=_MHA, layers=_MHA_LAYERS, scores=ALL),
    "openvino": Entry("runtimes.openvino:OpenVINO", "the layer in OpenVINO, in the precision of the point",
        Style("#661100", SOLID, "8"), supports=f"{_IN_INFERENCE}, on a CPU", packages=("openvino",), keeps_core=True),
    "onnxruntime": Entry("runtimes.onnxruntime:ONNXRuntime", "the layer exported to ONNX Runtime",
        Style("#117733", SOLID, "H"), supports=_IN_INFERENCE, packages=_ONNX),
    "sdpa_fa3": Entry("attend.sdpa:adapt_flash", "scaled_dot_product_attention with FlashAttention 3",
        Style("#6699cc", SOLID, "^", hollow=True), supports=_HALF, packages=("flash-attn-3",), source=_HOPPER,
        on_gpu=True, flash="FA3", kernel="FlashAttnFwdSm90", options=_GQA),
    "sdpa_fa4": Entry("attend.sdpa:adapt_flash", "scaled_dot_product_attention with FlashAttention 4",
        Style("#003f7f", SOLID, "p", hollow=True), supports=_HALF, packages=("flash-attn-4",), on_gpu=True,
        flash="FA4", kernel="flash_attncute", options=_GQA),
    "flash_attn": Entry("attend.packages:flash_attn", "FlashAttention 2 of the package flash-attn",
        Style("#999933", SOLID, "d", hollow=True), supports=_HALF, packages=("flash-attn",), on_gpu=True,
        function="flash_attn:flash_attn_func"),
    "flash_attn_3": Entry("attend.packages:flash_attn_3", "FlashAttention 3 of its own package, for Hopper",
        Style("#b0413e", SOLID, "$3$"), supports=_HALF, packages=("flash-attn-3",), source=_HOPPER, on_gpu=True,
        function="flash_attn_interface:flash_attn_func"),
    "flash_attn_4": Entry("attend.packages:flash_attn_4", "FlashAttention 4 of its own package, written in CuTe",
        Style("#3b5bab", SOLID, "$4$"), supports=_HALF, packages=("flash-attn-4",), on_gpu=True,
        function="flash_attn.cute:flash_attn_func"),
    "flash_attn_varlen": Entry("attend.packages:flash_attn_varlen",
        "packed items by FlashAttention 2 of the package flash-attn", Style("#6f7200", DASHED, "$2$"),
        supports=f"{_PACKED}, {_HALF}", layers=_PACKED_LAYERS, packages=("flash-attn",), on_gpu=True, packs=True,
        function="flash_attn:flash_attn_varlen_func"),
    "xformers": Entry("attend.packages:xformers", "memory_efficient_attention of xformers",
        Style("#8a5a00", DASH_DOT, "x"), supports="on a GPU, if installed", packages=("xformers",), on_gpu=True,
        function="xformers.ops:memory_efficient_attention"),
})  # fmt: skip
"""The implementations that have a name, in the order in which they are listed."""

OWN = Entry("", "a user's own", Style("", SOLID, ""))
"""What is known of an implementation of a user's own."""

GRAPH = "graph"
"""The name of a module as the graph of its call, and the way by which cores got into such a graph."""

COMPILED = "compiled"
"""The name of the whole as it is, compiled, and the beginning of those that are compiled from another one."""

ENTRY_POINT_GROUP = "attention_bench.implementations"
"""The entry point group in which installed packages name their own adapters."""


def advised(device: str, *, compiled: bool) -> list[str]:
    """Return what `advise` tries on a kind of device, cpu or cuda, in order: with torch.compile, or without."""
    if compiled:
        return ["compiled", "compiled_sdpa", "compiled_eager"]
    on_gpu = ["sdpa_efficient", "sdpa_cudnn"] if device == "cuda" else []
    return ["sdpa", "eager", "sdpa_flash", "sdpa_math", *on_gpu]


@dataclass(frozen=True)
class Name:
    """A name as it was written: of an implementation, of a layer, or of a module from any package.

    `base` stands before the brackets, in which `options` stand.
    """

    text: str
    base: str
    options: Mapping[str, Any]

    @property
    def module(self) -> str:
        """What stands before the colon: the module of a user's own, or a library of SOURCES."""
        return self.base.partition(":")[0]

    @property
    def attribute(self) -> str:
        """What stands behind the colon: the attribute of a user's own, or the model of a library."""
        return self.base.partition(":")[2]

    @property
    def input(self) -> str:
        """The input that the name of a module gives, sizes or `module:function`; empty without one."""
        return str(self.options.get("input", ""))

    @property
    def shapes_itself(self) -> bool:
        """Whether the name of a module says its shapes, so that no column does."""
        return self.module in SOURCES or "input" in self.options

    @property
    def is_model(self) -> bool:
        """Whether it is a module with its input, and no layer in a model: tokens and widths then say less."""
        return ":" in self.base and self.shapes_itself and "at" not in self.options

    @property
    def is_own(self) -> bool:
        """Whether an implementation is a user's own: `module:attribute`, or from an installed package."""
        return self.base not in IMPLEMENTATIONS

    @property
    def entry(self) -> Entry:
        """The facts about an implementation, OWN for a user's own."""
        return IMPLEMENTATIONS.get(self.base, OWN)

    @property
    def compiled_from(self) -> str:
        """What an implementation is compiled from, as `sdpa` for `compiled_sdpa`; empty for others."""
        return self.base.removeprefix(f"{COMPILED}_") if self.base.startswith(f"{COMPILED}_") else ""


@cache
def name_of(text: str) -> Name:
    """Return a name with its options; raises ValueError if it breaks the grammar.

    The value of an option is a Python literal (a number, a text, a tuple, a list, None, True), `true` or `false`; any
    other text is itself the value.
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
    """Return a name with one more option, or another value of it."""
    base, _, inside = name.removesuffix("]").partition("[")
    options = {part.partition("=")[0].strip(): part for part in split(inside) if part}  # texts keep their quotes
    return f"{base}[{','.join({**options, option: f'{option}={value}'}.values())}]"


def split(names: str) -> list[str]:
    """Return the parts of a comma-separated list; commas inside brackets or quotes separate nothing."""
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
