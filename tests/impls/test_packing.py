"""The layout of packed items, and a layer's requests to its core for items of different lengths."""

import torch
from torch import Tensor

import impls
from impls.layers.vit import ViTAttention
from impls.packing import Packing, asked, pack

CPU = torch.device("cpu")


def layer() -> ViTAttention:
    """Return a layer whose items have different lengths."""
    return ViTAttention(8, 8, 2, mask="causal", lengths="uniform")


def attend(q: Tensor, _k: Tensor, _v: Tensor, _scale: float, *, packing: Packing, mask: str | None = None) -> Tensor:
    """Return queries, and keep what came."""
    seen.append((packing.made, mask))
    return q


attend.apart = lambda packing, mask: (packing.lengths, mask)  # type: ignore[attr-defined]  # functions take attributes
seen: list[object] = []


def test_what_a_core_makes_apart_is_made_once_for_a_batch() -> None:
    """The core gets the packing and the layer's mask, and calls find its result; a core without one makes nothing."""
    function = impls.build(layer(), f"{__name__}:attend")
    pack(function, (2, 1), 4, CPU)
    first = asked(function, ())["packing"].made
    seen.clear()
    for _ in range(2):
        function(torch.zeros(1, 3, 8))
    assert seen == [(((2, 1), "causal"), "causal")] * 2
    assert asked(function, ())["packing"].made is first
    loop = impls.build(layer(), "loop")
    pack(loop, (2, 1), 4, CPU)
    assert asked(loop, ())["packing"].made is None
