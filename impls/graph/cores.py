"""The attention cores of a graph, and the softmaxes that belong to none."""

from dataclasses import InitVar, dataclass
from typing import Any

from torch.fx import Node

from impls.graph import rough
from impls.graph.tracing import Traced, dtype, line, module_of, shape, where
from impls.modules.masks import Mask

UNFUSED = "unfused"


@dataclass(frozen=True)
class Core:
    """One attention core of a graph.

    `layer` is the path of the innermost module with weights around it, `class_name` that module's class.
    `operator` is the operator that computes it, UNFUSED if several do. `shapes` and `strides` are those of queries,
    keys and values. `node` is the last one, whose value is the core's output; it is no field.
    """

    layer: str
    class_name: str
    layer_input: tuple[int, ...]
    operator: str
    by_sdpa: bool
    shapes: tuple[tuple[int, ...], ...]
    strides: tuple[tuple[int, ...], ...]
    dtype: str
    masks: tuple[Mask, ...] = ()
    mask: str = ""
    causal: bool = False
    dropout: float = 0.0
    lines: str = ""
    heads: int = 0
    proposal: tuple[str, ...] = ()
    obstacle: str = ""
    weights_are_used: bool = False
    sink: bool = False
    way: InitVar[Any] = None

    def __post_init__(self, way: Any) -> None:
        object.__setattr__(self, "way", way)

    @property
    def node(self) -> Node:
        """The node whose value is the core's output."""
        return self.way.last  # type: ignore[no-any-return, attr-defined]

    @property
    def is_fused(self) -> bool:
        """Whether one operator computes the core."""
        return self.operator != UNFUSED


@dataclass(frozen=True)
class Softmax:
    """A softmax that belongs to no known core: its module, its place in the source, and the reason."""

    layer: str
    lines: str
    reason: str
    node: InitVar[Any] = None

    def __post_init__(self, node: Any) -> None:
        object.__setattr__(self, "node", node)


@dataclass(frozen=True)
class Found:
    """The cores of a graph and the softmaxes that belong to none."""

    cores: tuple[Core, ...]
    unknown: tuple[Softmax, ...]


def found(graph: Traced) -> Found:
    """Return the cores of a graph and the softmaxes that belong to none."""
    cores, unknown = rough.find(graph.module)
    return Found(
        tuple(_core(each, graph) for each in cores),
        tuple(Softmax(module_of(each.softmax), where(each.softmax), each.why, each.softmax) for each in unknown),
    )


def _core(way: Any, graph: Traced) -> Core:
    path = module_of(way.last)
    kind = type(graph.inner.get_submodule(path)).__name__
    if way.fused:
        qkv = way.last.args[:3]
    else:
        qkv = (way.p.left, way.p.right, way.v_node)
    at = line(way.last)
    return Core(
        layer=path,
        class_name=kind,
        layer_input=(),
        operator=way.kind,
        by_sdpa=way.kind == "scaled_dot_product_attention",
        shapes=tuple(map(shape, qkv)),
        strides=tuple(tuple(each.meta["val"].stride()) for each in qkv),
        dtype=str(dtype(way.last)).removeprefix("torch."),
        lines=f"{at[0]}:{at[1]}" if at else "",
        dropout=way.dropout,
        way=way,
    )
