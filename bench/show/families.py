"""What an operator does, in a word, from its name; with the colours of the stages that do the same.

A call without stages is coloured by this.
"""

from bench.show.short_names import short
from bench.show.stage_palette import STAGE_COLOURS

PRODUCT, ATTENTION, SOFTMAX, COPY, ARITHMETIC, OTHER = (
    "matrix product",
    "attention in one kernel",
    "softmax",
    "copy or new memory",
    "element by element",
    "other",
)

FAMILIES = {
    ATTENTION: ("attention", "flash", "fmha", "cudnn_sdpa"),
    SOFTMAX: ("softmax",),
    PRODUCT: (
        "::mm",
        "addmm",
        "bmm",
        "kernels.mm",
        "mmbackward",
        "matmul",
        "linear",
        "gemm",
        "einsum",
        "conv",
        "cutlass",
        "xmma",
    ),
    COPY: ("copy", "clone", "contiguous", "empty", "::cat", "memcpy", "memset", "zero", "fill", "resize"),
    ARITHMETIC: ("add", "mul", "div", "sub", "sum", "elementwise", "fused", "triton"),
}
"""What is part of a name that belongs to a family; the first that fits holds."""

FAMILY_COLOURS = {
    PRODUCT: STAGE_COLOURS["qkv projection"],
    ATTENTION: STAGE_COLOURS["scores"],
    SOFTMAX: STAGE_COLOURS["softmax"],
    COPY: STAGE_COLOURS["merge heads"],
    ARITHMETIC: STAGE_COLOURS["skip"],
    OTHER: "#d2d4da",
}


def family(name: str) -> str:
    """Return what an operator or kernel of this name does; the arguments of its template don't count."""
    lowered = short(name).lower()
    return next((group for group, parts in FAMILIES.items() if any(part in lowered for part in parts)), OTHER)
