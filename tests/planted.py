"""Eager with extra real work planted in it, so that a change of known size can be looked for, and a copy of sdpa.

How much work each shape gets stands in the environment variable PLANTED, as JSON: the number of small matrix products
by implementation, shape of x and heads. `tests.drills.power` calibrates it.
"""

import json
import os

import torch
from torch import Tensor, nn

from impls import Implementation, Unsupported, with_attend
from impls.attend.sdpa import attend

PLANTED = "ATTENTION_BENCH_PLANTED"

SIDE = 32
"""The products are of matrices with this side: some microseconds each, so that they add up to any share."""


sdpa = with_attend(attend)
"""The layer with sdpa under another name: it is as fast as sdpa, whatever a measurement says."""


def three(layer: nn.Module) -> Implementation:
    """Return the layer with the work that is planted as `three`."""
    return _with_work(layer, "three")


def five(layer: nn.Module) -> Implementation:
    """Return the layer with the work that is planted as `five`."""
    return _with_work(layer, "five")


def twin(layer: nn.Module) -> Implementation:
    """Return the layer in the same wrapping, without any work."""
    return _with_work(layer, "none")


def key(batch: int, num_tokens: int, token_len: int, num_heads: int) -> str:
    """Return how a shape is written in PLANTED."""
    return f"{batch}x{num_tokens}x{token_len}h{num_heads}"


def _with_work(layer: nn.Module, name: str) -> Implementation:
    counts: dict[str, int] = json.loads(os.environ.get(PLANTED, "{}")).get(name, {})
    if name != "none" and not counts:
        raise Unsupported(f"{PLANTED} plants no {name}: the drill tests.drills.power collects it into planted.json")
    heads = int(layer.num_heads)  # type: ignore[arg-type]  # a plain attribute of the layer
    a, b, c = (torch.zeros(SIDE, SIDE) for _ in range(3))

    def call(x: Tensor) -> Tensor:
        batch, num_tokens, token_len = x.shape
        for _ in range(counts.get(key(batch, num_tokens, token_len, heads), 0)):
            torch.mm(a, b, out=c)
        y: Tensor = layer(x)
        return y

    return call
