"""A core as a call of attention: its queries, keys and values as `[B, H, N, D]`, a scale and a mask."""

from dataclasses import dataclass, replace
from typing import Any

from torch.fx import Node

from bench.modules.graph.constants import constant
from bench.modules.graph.masks import LOWEST, noted
from bench.modules.graph.memory import Memory
from bench.modules.graph.scores import Term
from impls.catalogue import CAUSAL, GIVEN


@dataclass(frozen=True, eq=False)
class Call:
    """A call of attention: its tensors are nodes of the graph, and `terms` those that the mask is made of."""

    query: Node
    key: Node
    value: Node
    scale: float
    mask: Node | None = None
    is_causal: bool = False
    has_groups: bool = False
    dropout: float = 0.0
    terms: tuple[tuple[Term, Node], ...] = ()

    @property
    def options(self) -> dict[str, Any]:
        """The keywords of the call, as `attend` takes them."""
        asked = {
            "attn_mask": self.mask,
            "mask": "causal" if self.is_causal else None,
            "enable_gqa": self.has_groups or None,
            "dropout_p": self.dropout or None,
        }
        return {keyword: value for keyword, value in asked.items() if value is not None}


def with_kind(call: Call, memory: Memory) -> Call:
    """Return a call without a mask that is constant and hides nothing, or hides later keys alone."""
    mask = None if call.mask is None else constant(call.mask, memory)
    if mask is None:
        return call
    (known,) = noted(mask)
    if known.kind != GIVEN and not bool((mask <= LOWEST).any()):
        return replace(call, mask=None)
    return replace(call, mask=None, is_causal=True) if known.kind == CAUSAL else call
