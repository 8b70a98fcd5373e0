"""Which algorithm ran, in a word, from the kernels of a row."""

ALGORITHMS = {
    "flash_attention": "flash",
    "efficient_attention": "efficient",
    "cudnn_attention": "cudnn",
    "attention_math": "math",
    "native_multi_head_attention": "fast path",
    "flex_attention": "flex",
}
"""What is part of a kernel's name, and what we call it."""

PRODUCTS = "products"
"""What ran where no kernel stands for the whole: matrix products with a softmax of some kind between them."""


def algorithm(kernels: str | None) -> str:
    """Return the algorithm that ran, and whether a compiler's own kernels did, for the kernels of a row."""
    if not kernels:
        return ""
    names = kernels.split(";")
    found = [word for part, word in ALGORITHMS.items() if any(part in name for name in names)]
    compiled = any(name == "CompiledFxGraph" or name.startswith("triton_") for name in names)
    return " + ".join([*(found or [PRODUCTS]), *(["compiled"] if compiled else [])])
