"""Memory given back."""

import sys

import psutil
import pytest
import torch

from bench.measure import heap

BLOCKS, BLOCK_BYTES = 1000, 60_000
"""Too small to be mapped one by one, and together too large to be overlooked."""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc alone can be asked for it")
def test_what_is_free_between_blocks_goes_back_to_the_system() -> None:
    """60 MB that a last block keeps from going by themselves are gone from the process when they were given back."""
    blocks = [torch.ones(BLOCK_BYTES, dtype=torch.uint8) for _ in range(BLOCKS)]
    held = psutil.Process().memory_info().rss
    del blocks[:-1]
    heap.give_back()
    assert held - psutil.Process().memory_info().rss > BLOCKS * BLOCK_BYTES / 2
