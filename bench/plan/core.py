"""What is known of the attention cores of a module: facts alone, from the graph that shows them to the sentences."""

from msgspec import Struct

UNFUSED = "unfused"
"""The operator of a core that several operators compute."""

SDPA = "scaled_dot_product_attention"


class Core(Struct, frozen=True):
    """An attention core.

    `layer` is the path of the innermost module with weights around it, and `class_name` that module's class, `nn.…` for
    one of torch's own. `shapes` are those of queries, keys and values as `[B, H, N, D]`. `mask` says what the mask does
    in this call, with its dtype and shape. `lines` are the lines of source that compute it: `/home/me/model.py:12-15`.
    """

    layer: str
    class_name: str
    operator: str
    """The operator that computes it, UNFUSED if several do."""
    shapes: tuple[tuple[int, ...], ...]
    dtype: str
    scale: float
    mask: str = ""
    is_causal: bool = False
    """Whether the mask hides later keys alone, in every call."""
    lines: str = ""
    obstacle: str = ""
    """Why no other core can be put in its place."""
    unread: str = ""
    """The line that makes weights, or something of them, for an output that nothing reads."""

    @property
    def is_fused(self) -> bool:
        """Whether one operator computes it."""
        return self.operator != UNFUSED

    @property
    def by_sdpa(self) -> bool:
        """Whether torch's function computes it."""
        return self.operator == SDPA


class Softmax(Struct, frozen=True):
    """A softmax that belongs to no core: the module around it, its line of source, and why."""

    layer: str
    lines: str
    reason: str
