"""The facts about a module's attention cores, from the graph that shows them to the sentences about them."""

from msgspec import Struct

UNFUSED = "unfused"
"""The operator name for a core that several operators compute."""

SDPA = "scaled_dot_product_attention"


class Core(Struct, frozen=True):
    """An attention core.

    `layer` is the path of the innermost module with weights around it, and `class_name` its class, `nn.…` for one of
    torch's own. `shapes` has the shapes of queries, keys and values as `[B, H, N, D]`. `mask` describes the mask in
    this call, with its dtype and shape. `lines` are the lines of source that compute it: `/home/me/model.py:12-15`.
    """

    layer: str
    class_name: str
    operator: str
    """The operator that computes it; UNFUSED for several."""
    shapes: tuple[tuple[int, ...], ...]
    dtype: str
    scale: float
    mask: str = ""
    is_causal: bool = False
    """Whether the mask is causal in every call."""
    lines: str = ""
    obstacle: str = ""
    """Why it can't be replaced by another core."""
    unread: str = ""
    """The line that computes attention weights, or something from them, that nothing reads."""

    @property
    def is_fused(self) -> bool:
        """Whether a single operator computes it."""
        return self.operator != UNFUSED

    @property
    def by_sdpa(self) -> bool:
        """Whether `scaled_dot_product_attention` computes it."""
        return self.operator == SDPA


class Softmax(Struct, frozen=True):
    """A softmax that isn't part of a core: the module around it, its line of source, and the reason."""

    layer: str
    lines: str
    reason: str
