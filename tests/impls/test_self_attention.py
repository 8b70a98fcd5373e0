"""The worked example of the article about the one-headed, unscaled layer."""

import numpy as np
import pytest
import torch

from impls import Implementation, build
from impls.layers.self_attention import SelfAttention
from tests.impls.reference import Array, array

TOKENS = [[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]]
KEY_WEIGHTS: list[list[float]] = [[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]]
QUERY_WEIGHTS: list[list[float]] = [[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]]
VALUE_WEIGHTS: list[list[float]] = [[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]]
OUTPUTS = [
    [1.936621, 6.683105, 1.595068],
    [1.999994, 7.963991, 0.053976],
    [1.999704, 7.759892, 0.358389],
]
"""All as the article prints them; its weight matrices are used as `x @ W`."""


def layer_with(*weights_in_out: list[list[float]]) -> SelfAttention:
    """Return a layer with these weights of queries, keys and values, written `[in, out]` as in the article."""
    query, key, value = (np.transpose(matrix) for matrix in weights_in_out)
    layer = SelfAttention(query.shape[1], len(query), len(value))
    given = {"query.weight": query, "key.weight": key, "value.weight": value}
    layer.load_state_dict({name: torch.tensor(matrix).float() for name, matrix in given.items()})
    return layer.eval()


def output(implementation: Implementation, tokens: list[list[int]]) -> Array:
    """Return what an implementation makes of tokens."""
    with torch.inference_mode():
        return np.asarray(array(implementation(torch.tensor(tokens).float().unsqueeze(0)))[0])


@pytest.mark.parametrize("name", ["eager", "manual", "sdpa"])
def test_the_articles_outputs(name: str) -> None:
    """An implementation gives them to 1e-5."""
    layer = layer_with(QUERY_WEIGHTS, KEY_WEIGHTS, VALUE_WEIGHTS)
    np.testing.assert_allclose(output(build(layer, name), TOKENS), OUTPUTS, rtol=0, atol=1e-5)
