"""Points and cases; a case is a point with an implementation."""

import hashlib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Self

from bench.plan.columns import REQUIRED, PointColumn, Role, ValueKind, column, declared_by
from bench.plan.device import COLD, CPU, GRAPH, HOST, HOT, Kind, kind
from bench.plan.invocation import short
from bench.plan.lengths import FORM, LIST, RULE, of_items
from impls.catalogue import FIXED, name_of

RETAINED = "retained"
"""The value of `allocator` with which freed memory stays with the process."""

UNSAFE = re.compile(r"[^\w.=-]+")
"""Characters that are replaced in file names; a model's name may have any."""


LONGEST_IN_FILE_NAME = 100
"""The most characters of a layer's name in a file name; systems allow 255 for all columns together."""

MOST_LENGTHS = 6
"""The most lengths of a list that a description prints."""

AT = re.compile(r"\bat=([^,\]]+),?")
"""The option of a model's name that selects one layer of it, by path."""


def _safe(layer: str) -> str:
    """Return a layer's name for a file name; a long one is cut, with a hash of the whole at its end."""
    name = UNSAFE.sub("-", layer.replace(":", ".")).rstrip("-")
    digest = hashlib.sha256(layer.encode()).hexdigest()[:8]
    return name if len(name) <= LONGEST_IN_FILE_NAME else f"{name[:LONGEST_IN_FILE_NAME]}-{digest}"


def _few_lengths(lengths: str) -> str:
    """Return lengths for people; for a long list the longest and the shortest."""
    listed = lengths.removeprefix(LIST).split("+")
    if not lengths.startswith(LIST) or len(listed) <= MOST_LENGTHS:
        return lengths.removeprefix(LIST)
    return f"{len(listed)} from {listed[-1]} to {listed[0]}"


def _if_model(name: str) -> Callable[[Any], Any]:
    """Return a column's `usual`: for a model any value is usual, because the model's name says more."""
    return lambda point: getattr(point, name) if name_of(point.layer).is_model else REQUIRED


def _path_first(layer: str) -> str:
    """Return a layer's name; in a model the path comes first: `blocks.0.attn of timm:vit_tiny_patch16_224`."""
    at = AT.search(layer)
    return f"{at[1]} of {AT.sub('', layer).replace(',]', ']').replace('[]', '')}" if at else layer


@dataclass(frozen=True, kw_only=True)
class Point:
    """The conditions under which implementations are compared; each field is a column.

    A column that a layer doesn't use is None.
    """

    __slots__ = ("__dict__", "__weakref__", "_hash")

    layer: str = column(
        f"a name of `{short()} list`, or a module such as timm.layers:Attention",
        Role.LAYER,
        default="vit",
        words=_path_first,
        short=_safe,
    )
    device: str = column(
        "where the layer runs: cpu, cuda or cuda:<number>",
        Role.EXECUTION,
        default=CPU.name,
        is_ok=re.compile(r"cpu|cuda(:[0-9]+)?").fullmatch,
        rule="cpu, cuda or cuda:<number>",
        short=lambda value: value.replace(":", ""),
        usual=CPU.name,
    )
    dtype: str = column(
        "type of input, weights and output",
        Role.EXECUTION,
        default="float32",
        choices={
            "float32": "32 bits",
            "bfloat16": "16 bits, range of float32",
            "float16": "16 bits, smaller range",
        },
    )
    mode: str = column(
        "what a call does",
        Role.EXECUTION,
        default="inference",
        choices={
            "inference": "forward pass under torch.inference_mode",
            "forward": "forward pass that keeps its graph",
            "train": "forward and backward pass",
            "backward": "backward pass alone",
        },
    )
    batch: int = column("items in a call", Role.X, default=8, short="b{}", words="B={}")
    num_tokens: int = column(
        "tokens in an item (the sequence length)",
        Role.X,
        short="n{}",
        words="N={}",
        usual=_if_model("num_tokens"),
    )
    token_len: int = column(
        "embedding width at the input; channels if not given",
        Role.X,
        short="w{}",
        words="",
        usual=lambda point: point.channels,
        described_with="channels",
    )
    channels: int = column(
        "embedding width at the output (embed_dim, d_model)",
        Role.X,
        default=REQUIRED,
        short="c{}",
        words="C={}",
        usual=_if_model("channels"),
    )
    num_heads: int = column(
        "attention heads", Role.X, default=1, short="h{}", words="H={}", usual=_if_model("num_heads")
    )
    num_kv_tokens: int | None = column(
        "tokens of the context that keys and values come from (cross-attention)",
        Role.CONTEXT,
        absent=None,
        short="m{}",
        words="M={}",
    )
    context_dim: int | None = column(
        "embedding width of the context; token_len if not given",
        Role.CONTEXT,
        absent=None,
        short="x{}",
        words="context C={}",
    )
    num_kv_heads: int | None = column(
        "heads of keys and values, a divisor of num_heads (grouped-query attention); num_heads if not given",
        Role.CORE,
        absent=None,
        short="g{}",
        words="KV H={}",
    )
    qkv_bias: bool = column(
        "bias in the projection to queries, keys and values",
        Role.FUNCTION,
        short=lambda _value: "bias",
        words=lambda value: "with qkv bias" if value else "without qkv bias",
        usual=False,
    )
    qk_scale: float | None = column(
        "scale of the scores; the layer's own if not given",
        Role.FUNCTION,
        kind=ValueKind.NUMBER,
        absent=None,
        short="s{:g}",
        words=lambda value: "qk scale of the layer" if value is None else f"qk scale {value:g}",
    )
    key_channels: int | None = column(
        "width of queries and keys (layer self); channels if not given",
        Role.FUNCTION,
        absent=None,
        short="k{}",
        words="keys C={}",
    )
    image_size: int | None = column(
        "side of a square image in pixels; num_tokens follows from it",
        Role.IMAGE,
        absent=None,
        short="i{}",
        words="images {0}×{0}",
    )
    patch_size: int | None = column(
        "side of a square patch in pixels",
        Role.IMAGE,
        absent=None,
        short="p{}",
        words="patches {0}×{0}",
    )
    qk_norm: str = column(
        "norm of queries and keys, per head",
        Role.QUERIES,
        absent="none",
        choices={"none": "no norm", "rms": "RMSNorm", "layer": "LayerNorm"},
        words=lambda value: "" if value == "none" else f"qk norm {value}",
        short="{}norm",
        usual="none",
    )
    rope: str = column(
        "rotary position embedding of queries and keys",
        Role.QUERIES,
        absent="none",
        choices={"none": "no rotation", "axial": "by row and column of a square grid, leading tokens excepted"},
        words=lambda value: "" if value == "none" else f"rope {value}",
        short="rope{}",
        usual="none",
    )
    attn_bias: str = column(
        "bias added to the scores",
        Role.CORE,
        absent="none",
        choices={
            "none": "no bias",
            "relative": "learned, per head and offset on a square grid (Swin)",
            "alibi": "minus the distance of two tokens, times a slope per head",
            "given": "per head, query and key, without gradient (layer core)",
            "learned": "the same with gradient",
        },
        words=lambda value: "" if value == "none" else f"{value} bias",
        usual="none",
    )
    window_size: int | None = column(
        "side of the attention windows in tokens",
        Role.CORE,
        absent=None,
        short="win{}",
        words="windows {0}×{0}",
    )
    mask: str = column(
        "which tokens a token may attend to",
        Role.FUNCTION,
        default="none",
        absent="none",
        choices={
            "none": "all",
            "causal": "itself and earlier ones",
        },
        words="mask {}",
        usual="none",
    )
    lengths: str = column(
        f"tokens per item: {RULE}",
        Role.FUNCTION,
        default=FIXED,
        absent=FIXED,
        is_ok=FORM.fullmatch,
        rule=RULE,
        words=lambda value: f"lengths {_few_lengths(value)}",
        short=lambda value: f"len{_safe(value)}",
        usual=FIXED,
    )
    threads: int = column(
        "threads per call; physical cores less one if not given",
        Role.EXECUTION,
        default=REQUIRED,
        short="t{}",
        words=lambda value: "1 thread" if value == 1 else f"{value} threads",
    )
    allocator: str = column(
        "where freed memory goes; retained if not given",
        Role.EXECUTION,
        choices={
            RETAINED: "kept by the process, in huge pages if the system has them",
            "system": "the C library's defaults",
        },
        words="allocator {}",
        usual=RETAINED,
    )
    timing: str = column(
        "how a call is timed; host on a CPU and device-cold on a GPU if not given",
        Role.EXECUTION,
        choices={
            HOST: "wall time, GPU synchronised",
            COLD: "GPU time by CUDA events, L2 overwritten before each call",
            HOT: "GPU time, L2 as the last call left it",
            GRAPH: "GPU time of a CUDA graph of one call, L2 overwritten",
        },
        words="timing {}",
        usual=lambda point: point.kind.timings[0],
    )

    def __hash__(self) -> int:
        """Return the hash, computed once because a run looks up points often."""
        if not hasattr(self, "_hash"):
            object.__setattr__(self, "_hash", hash(tuple(vars(self).values())))
        return int(self._hash)  # type: ignore[attr-defined]

    def __getstate__(self) -> dict[str, Any]:
        """Return the columns without the hash, which differs in another process."""
        return vars(self)

    @property
    def kind(self) -> Kind:
        """The kind of its device."""
        return kind(self.device)

    @property
    def name(self) -> str:
        """A name that is unique to the point and safe in a file name."""
        return self.short_name()

    @property
    def kv_tokens(self) -> int:
        """The number of tokens per item that keys and values come from."""
        return self.num_kv_tokens or self.num_tokens

    @property
    def kv_heads(self) -> int:
        """The number of heads of keys and values."""
        return self.num_kv_heads or self.num_heads

    @property
    def keys(self) -> int:
        """The number of keys that each query has a score with: those in its window, or all in its item."""
        return self.kv_tokens if self.window_size is None else self.window_size**2

    @property
    def items(self) -> tuple[int, ...]:
        """The tokens of each item, the longest first, without padding."""
        return of_items(self.lengths, self.batch, self.num_tokens)

    @property
    def is_padded(self) -> bool:
        """Whether items have different lengths, so that they are padded or packed."""
        return self.lengths != FIXED

    def short_name(self, without: Collection[str] = ()) -> str:
        """Return a name that is safe in a file name and leaves out some columns; it always has the device."""
        return "-".join(
            column.shortened(getattr(self, name))
            for name, column in COLUMNS.items()
            if name not in without and (name == "device" or not column.is_usual(self))
        )


COLUMNS: Mapping[str, PointColumn] = declared_by(Point)
"""The columns of a point by name, in the order of results.csv."""


def of_role(*roles: Role) -> tuple[str, ...]:
    """Return the names of the columns that have one of these roles, in order."""
    return tuple(name for name, column in COLUMNS.items() if column.role in roles)


OF_LAYERS = tuple(name for name in of_role(Role.X) if name != "batch")
"""The columns of attention layers; in a whole model they describe its largest attention."""

POINT_COLUMNS = tuple(COLUMNS)
CASE_COLUMNS = ("layer", "implementation", *POINT_COLUMNS[1:])

CONTROL = "control"
"""The name under which a run measures the baseline a second time; its true ratio to the baseline is 1."""

BEFORE, AFTER = "before", "after"
"""The names in a table of the two sides of a duel that differ in more than the implementation."""

AS_IS = "as_is"
"""The implementation of a model's layer that changes nothing."""


@dataclass(frozen=True)
class Case:
    """A point and an implementation, or CONTROL in its place: one row of the results."""

    point: Point
    implementation: str

    @property
    def name(self) -> str:
        """A name that is unique to the case."""
        return f"{self.point.name}-{self.implementation}"

    def columns(self) -> dict[str, Any]:
        """Return the case as columns, in the order of CASE_COLUMNS."""
        values = {"implementation": self.implementation, **vars(self.point)}
        return {name: values[name] for name in CASE_COLUMNS}

    @classmethod
    def from_columns(cls, columns: Mapping[str, Any]) -> Self:
        """Return the case of a row; pandas' missing values count as None. Raises KeyError for a missing column."""
        values: dict[str, Any] = {name: None if _is_missing(columns[name]) else columns[name] for name in POINT_COLUMNS}
        return cls(Point(**values), columns["implementation"])


def _is_missing(value: Any) -> bool:
    # a missing value of pandas differs from itself, or is neither true nor false
    return value is None or type(value).__name__ == "NAType" or value != value
