"""Fused operators that are no calls of attention for others."""

import pytest
import torch
from torch.nn.attention.flex_attention import flex_attention

from bench.modules.graph.cores import found
from bench.modules.graph.rewriting import rewritten
from bench.modules.graph.tracing import traced
from impls.attend import sdpa
from impls.contract import Unsupported


@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_a_core_by_flex_attention_stays() -> None:
    """It is found, and its programs are not read."""
    graph = traced(lambda x: flex_attention(x, x.roll(1, -2), 2 * x), (torch.randn(1, 2, 6, 8),))
    (core,) = found(graph).cores
    assert core.is_fused
    with pytest.raises(Unsupported, match="flex_attention: its programs are not read"):
        rewritten(graph, sdpa.attend)
