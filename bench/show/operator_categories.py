"""The category of an operator, found from its name, and the colour of each category.

A category has the colour of the stage that does the same work. Profiles without stages are coloured by category.
"""

from bench.show.palette import STAGE_COLOURS
from bench.show.short_names import short

PRODUCT, BATCHED, SOFTMAX, SEVERAL, COPY, ARITHMETIC, OTHER = (
    "matrix product",
    "batched product",
    "softmax",
    "several steps in one kernel",
    "copy or new memory",
    "element by element",
    "other",
)

CATEGORIES = {
    SEVERAL: ("attention", "flash", "fmha", "cudnn_sdpa", "flex", "fused", "triton_"),
    SOFTMAX: ("softmax",),
    BATCHED: ("bmm", "matmul", "einsum"),
    PRODUCT: ("::mm", "addmm", "kernels.mm", "mmbackward", "linear", "gemm", "conv", "cutlass", "xmma"),
    COPY: ("copy", "clone", "contiguous", "empty", "::cat", "memcpy", "memset", "zero", "fill", "resize"),
    ARITHMETIC: ("add", "mul", "div", "sub", "sum", "elementwise"),
}
"""The parts of names by which a category is recognised; the first that fits is taken."""

CATEGORY_COLOURS = {
    PRODUCT: STAGE_COLOURS["qkv projection"],
    BATCHED: STAGE_COLOURS["scores"],
    SOFTMAX: STAGE_COLOURS["softmax"],
    SEVERAL: "#7b4fa3",
    COPY: STAGE_COLOURS["merge heads"],
    ARITHMETIC: STAGE_COLOURS["skip"],
    OTHER: "#cbc5ba",
}
"""In about the order of a call: operators of a category have the same position in every bar."""


def category(name: str) -> str:
    """Return the category of an operator or kernel by its name, without its template's arguments."""
    lowered = short(name).lower()
    return next((group for group, parts in CATEGORIES.items() if any(part in lowered for part in parts)), OTHER)
