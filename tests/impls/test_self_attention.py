"""The worked example of the article about the one-headed, unscaled layer."""

import numpy as np
import pytest
import torch
from torch import Tensor

from impls import Implementation, build
from impls.layers.self_attention import SelfAttention
from tests.impls.reference import Array, array

TOKENS = [[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]]
KEY_WEIGHTS: list[list[float]] = [[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]]
QUERY_WEIGHTS: list[list[float]] = [[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]]
VALUE_WEIGHTS: list[list[float]] = [[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]]
KEYS = [[0, 1, 1], [4, 4, 0], [2, 3, 1]]
QUERIES = [[1, 0, 2], [2, 2, 2], [2, 1, 3]]
VALUES: list[list[float]] = [[1, 2, 3], [2, 8, 0], [2, 6, 3]]
SCORES = [[2, 4, 4], [4, 16, 12], [4, 12, 10]]
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


def test_the_articles_keys_queries_values_and_scores() -> None:
    """The projections give the article's integers exactly, and so do their products."""
    layer = layer_with(QUERY_WEIGHTS, KEY_WEIGHTS, VALUE_WEIGHTS)
    seen: list[Tensor] = []

    def spy(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        seen.extend((q, k, v, (q * scale) @ k.transpose(-2, -1)))
        return v

    layer.attend = spy
    output(layer, TOKENS)

    assert [tensor[0, 0].tolist() for tensor in seen] == [QUERIES, KEYS, VALUES, SCORES]


@pytest.mark.parametrize("name", ["eager", "manual", "sdpa"])
def test_the_articles_outputs(name: str) -> None:
    """An implementation gives them to 1e-5."""
    layer = layer_with(QUERY_WEIGHTS, KEY_WEIGHTS, VALUE_WEIGHTS)
    np.testing.assert_allclose(output(build(layer, name), TOKENS), OUTPUTS, rtol=0, atol=1e-5)
