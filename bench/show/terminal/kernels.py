"""Which algorithm ran, in a word, from the kernels of a row."""

ALGORITHMS = {
    "flash_attention": "flash",
    "flash_fwd": "flash",
    "efficient_attention": "efficient",
    "cudnn_attention": "cudnn",
    "attention_math": "math",
    "native_multi_head_attention": "fast path",
    "flex_attention": "flex",
}
"""What is part of a kernel's name, and what we call it."""

MULTIPLY = ("mm", "bmm", "addmm", "baddbmm", "matmul", "gemm")
"""What a matrix product is called, or is called among other things."""

LONGEST = 24
"""So many characters of a kernel's own name are shown."""

PRODUCTS = "products"
"""What ran where no kernel stands for the whole: matrix products with a softmax of some kind between them."""


def algorithm(kernels: str | None) -> str:
    """Return the algorithm that ran, and whether a compiler's own kernels did, for the kernels of a row."""
    if not kernels:
        return ""
    names = kernels.split(";")
    algorithms = [word for part, word in ALGORITHMS.items() if any(part in name for name in names)]
    compiled = any(name == "CompiledFxGraph" or name.startswith("triton_") for name in names)
    return " + ".join([*(dict.fromkeys(algorithms) or [_plain(names)]), *(["compiled"] if compiled else [])])


def _plain(names: list[str]) -> str:
    """Return that products ran, or else the name of the first kernel."""
    if any(name in MULTIPLY or "gemm" in name or "conv" in name for name in names):
        return PRODUCTS
    own = names[0]
    return own if len(own) <= LONGEST else f"{own[: LONGEST - 1]}…"
