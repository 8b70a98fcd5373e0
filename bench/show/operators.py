"""Operators and kernels in pictures and on pages: their category by their name, its colour, and a name short enough.

A category has the colour of the stage that does the same work. Profiles without stages are coloured by category.
"""

from collections.abc import Iterable

from bench.show.palette import STAGE_COLOURS

LONGEST = 64
"""Longer names are cut to this number of characters."""

NOISE = {
    "void ": "",
    "(anonymous namespace)::": "",
    "at::native::": "",
    "autograd::engine::evaluate_function: ": "autograd: ",
}
"""Frequent parts of long names that tell nothing, and what replaces them."""

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


def short(name: str) -> str:
    """Return a name of at most LONGEST characters: first without its template's arguments, then cut."""
    if len(name) <= LONGEST:
        return name
    plain = name
    for noise, word in NOISE.items():
        plain = plain.replace(noise, word)
    plain = plain or name
    # a name that begins with a bracket isn't a template's
    ends = [place for place in (plain.find("<"), plain.find("(")) if place > 0]
    plain = plain[: min(ends)] + "<…>" if ends else plain
    return plain if len(plain) <= LONGEST else f"{plain[: LONGEST - 1]}…"


def shortened(names: Iterable[str]) -> list[str]:
    """Return the names that `short` changes, each once, in order."""
    return [name for name in dict.fromkeys(names) if short(name) != name]


def category(name: str) -> str:
    """Return the category of an operator or kernel by its name, without its template's arguments."""
    lowered = short(name).lower()
    return next((group for group, parts in CATEGORIES.items() if any(part in lowered for part in parts)), OTHER)
