"""The memory that this process has freed but still holds."""

import ctypes
import gc
import sys

import torch


def give_back() -> None:
    """Release freed memory to the system and the GPU, even if the allocator is configured to retain it."""
    gc.collect()
    torch.cuda.empty_cache()  # no effect if no GPU was used
    if sys.platform == "linux" and hasattr(ctypes.CDLL(None), "malloc_trim"):
        ctypes.CDLL(None).malloc_trim(0)
