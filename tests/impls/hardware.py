"""Which implementations the CPU can't run, or can't run without compiling."""

from impls import IMPLEMENTATIONS, versions

LACKING = ("sdpa_efficient", "sdpa_cudnn")
"""Backends of scaled_dot_product_attention that exist on GPUs alone."""

ON_GPU = tuple(name for name, entry in IMPLEMENTATIONS.items() if entry.on_gpu)
"""What is refused without a GPU."""

RUNTIMES = tuple(name for name, entry in IMPLEMENTATIONS.items() if entry.adapter.startswith("impls.runtimes."))
"""What another runtime computes: it is built for each shape, in inference alone, and starts threads in its process."""

INSTALLED = tuple(name for name in RUNTIMES if len(versions([name])) == len(IMPLEMENTATIONS[name].packages))
"""The runtimes whose packages are here."""

NOT_EAGER_ON_CPU = (*LACKING, *ON_GPU, *RUNTIMES, "flex", "measured")
"""Left out where every implementation is called at many shapes; flex compiles, and has no backward here; measured needs
a table."""
