"""What an operator does, in a word, from its name; with the colours of the stages that do the same.

What has no stages is coloured by this, on the page and in pictures.
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
"""What is part of a name that belongs to a category; the first that fits holds."""

CATEGORY_COLOURS = {
    PRODUCT: STAGE_COLOURS["qkv projection"],
    BATCHED: STAGE_COLOURS["scores"],
    SOFTMAX: STAGE_COLOURS["softmax"],
    SEVERAL: "#7b4fa3",
    COPY: STAGE_COLOURS["merge heads"],
    ARITHMETIC: STAGE_COLOURS["skip"],
    OTHER: "#cbc5ba",
}
"""In the order of a call, near enough: operators of a category stand in the same place in every bar."""


def category(name: str) -> str:
    """Return what an operator or kernel of this name does; the arguments of its template don't count."""
    lowered = short(name).lower()
    return next((group for group, parts in CATEGORIES.items() if any(part in lowered for part in parts)), OTHER)
