"""What is written in place of cores."""

import pytest
import torch
from torch import nn

from bench.modules.graph.cores import found
from bench.modules.graph.source import written_lines
from bench.modules.graph.tracing import traced
from tests.written_cores import B, D, H, N, traced_layer

SCALE = f"scale={D**-0.5:.6g}"


@pytest.mark.parametrize(
    ("kind", "line", "note"),
    [
        ("plain", f"(q, k, v, {SCALE})", f"q is {[B, H, N, D]}"),
        ("causal", f"(q, k, v, is_causal=True, {SCALE})", ""),
        ("boolean mask", f"(q, k, v, attn_mask=mask, {SCALE})", f"padding float32 {[B, 1, 1, N]}"),
        ("bias and boolean mask", f"(q, k, v, attn_mask=mask, {SCALE})", "given float32"),
        ("used later", f"(q, k, v, {SCALE})", "left out: its weights are used again"),
    ],
)
def test_a_core_is_written_as_a_call_with_its_scale_and_its_mask(kind: str, line: str, note: str) -> None:
    """Comments say where it stands, the shapes, and what the mask does."""
    graph = traced_layer(kind)[2]
    ((first, *notes),) = written_lines(found(graph).cores, graph)
    assert first == f"F.scaled_dot_product_attention{line}"
    assert "written_cores.py:" in notes[0]
    assert any(note in each for each in notes)


def test_a_fused_core_and_torchs_own_layer_have_no_line() -> None:
    """One operator computes the one already; the other is told to leave its weights."""
    layer = nn.MultiheadAttention(16, 2, batch_first=True).eval()
    graph = traced(lambda x: layer(x, x, x), [torch.randn(3, 6, 16)], layer)
    ((line,),) = written_lines(found(graph).cores, graph)
    assert "need_weights=False" in line
    graph = traced(nn.functional.scaled_dot_product_attention, [torch.randn(2, 3, 4, 8)] * 3)
    assert written_lines(found(graph).cores, graph) == [()]
