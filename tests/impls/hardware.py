"""Which implementations the CPU can't run, or can't run without compiling."""

LACKING = ("sdpa_efficient", "sdpa_cudnn")
"""Backends of scaled_dot_product_attention that exist on GPUs alone."""

NOT_EAGER_ON_CPU = (*LACKING, "flex")
"""Left out where every implementation is called at many shapes; flex compiles, and has no backward here."""
