"""The layer `core` by its formula."""

from typing import Any

import numpy as np
import pytest
import torch

from impls.layers.core import Core
from tests.impls import oracle
from tests.impls.layers.test_attention import Columns, tokens
from tests.impls.reference import ROUNDING, Array, array, distance, weights

QUERIES, WIDTH = 5, 4


@pytest.mark.parametrize("attn_bias", ["none", "given", "learned"])
@pytest.mark.parametrize("kind", ["none", "causal", "padding"])
@pytest.mark.parametrize("keys", [3, 5, 9])
@pytest.mark.parametrize("groups", [None, 1])
def test_outputs_and_gradients_are_those_of_the_formula(
    groups: int | None, keys: int, kind: str, attn_bias: str
) -> None:
    """With fewer, as many and more keys than queries, grouped heads, masks and a bias, which is the same for all items.

    A causal mask starts in the upper left corner, as in torch's function. A learned bias has a gradient.
    """
    lengths, mask = ("uniform", "none") if kind == "padding" else ("fixed", kind)
    layer = Core(
        16, 4, groups, None, mask, num_tokens=QUERIES, num_kv_tokens=keys, attn_bias=attn_bias, lengths=lengths
    )
    layer = layer.double()
    q = tokens(2, 4, QUERIES, WIDTH).requires_grad_()
    k, v = (tokens(2, groups or 4, keys, WIDTH).requires_grad_() for _ in "kv")
    hidden = torch.arange(keys) >= torch.tensor([[keys], [keys - 2]])
    padding: Any = hidden.numpy() if kind == "padding" else None
    values = {**oracle.inputs(array(q), array(k), array(v)), **weights(layer)}

    def formula(values: oracle.Values) -> Array:
        return oracle.core(Columns(mask=mask), values, padding)

    o = layer(q, k, v, *((hidden,) if kind == "padding" else ()))
    assert distance(o, formula(values)) < ROUNDING

    do = tokens(*o.shape)
    o.backward(do)
    assert [*layer.parameters()] == ([layer.bias] if attn_bias == "learned" else [])
    for name, tensor in zip(values, (q, k, v, *layer.parameters()), strict=attn_bias != "given"):
        assert tensor.grad is not None
        direction = np.random.default_rng(1).normal(size=tensor.shape)
        expected = oracle.slope(formula, values, name, direction, array(do))
        assert float((array(tensor.grad) * direction).sum()) == pytest.approx(expected, rel=1e-9, abs=ROUNDING), name


def test_a_given_scale_is_the_scale() -> None:
    """With 0 every query weighs all keys equally."""
    q, k, v = (tokens(2, 2, 3, 4) for _ in "qkv")
    layer = Core(8, 2, qk_scale=0.0, num_tokens=3)
    assert distance(layer(q, k, v), array(v.mean(2, keepdim=True).expand_as(v))) < ROUNDING
