"""The algorithm that ran, found from the kernels of a row."""

ALGORITHMS = {
    "flash_attention": "flash",
    "flash_fwd": "flash",
    "efficient_attention": "efficient",
    "cudnn_attention": "cudnn",
    "attention_math": "math",
    "native_multi_head_attention": "fast path",
    "flex_attention": "flex",
    "MultiHeadAttention": "fused",
    "MatMul+Softmax+MatMul": "fused",
    "Softmax+MatMul": "fused",
}
"""Parts of kernel names, and the algorithm that each shows."""

MULTIPLY = ("mm", "bmm", "addmm", "baddbmm", "matmul", "gemm", "dot")
"""Names of matrix products."""

LONGEST = 24
"""A kernel's own name is cut to this number of characters."""

PRODUCTS = "products"
"""The word if no single kernel does the whole: matrix products with some softmax between them."""


def algorithm(kernels: str | None) -> str:
    """Return the algorithm that ran, and whether a compiler's own kernels did, for the kernels of a row."""
    if not kernels:
        return ""
    names = kernels.split(";")
    algorithms = [word for part, word in ALGORITHMS.items() if any(part in name for name in names)]
    compiled = any(name == "CompiledFxGraph" or name.startswith(("triton_", "cpp_fused")) for name in names)
    return " + ".join([*(dict.fromkeys(algorithms) or [_plain(names)]), *(["compiled"] if compiled else [])])


def _plain(names: list[str]) -> str:
    """Return that products ran, or else the name of the first kernel."""
    if any(
        name.split()[0].removesuffix("_out").lower() in MULTIPLY or "gemm" in name or "conv" in name for name in names
    ):
        return PRODUCTS
    own = names[0]
    return own if len(own) <= LONGEST else f"{own[: LONGEST - 1]}…"
