"""The table of contents of impls."""

import pytest
import torch

from impls import build
from impls.attend import eager, manual, online, sdpa
from impls.contract import Attend
from impls.layers.vit import ViTAttention
from tests.impls.reference import normal


@pytest.mark.parametrize(
    ("name", "core"),
    [("eager", eager.attend), ("manual", manual.attend), ("online", online.attend), ("sdpa", sdpa.attend)],
)
def test_a_name_stands_for_its_core(name: str, core: Attend) -> None:
    """The implementation of a core's name computes bit for bit what the layer computes with that core."""
    layer = ViTAttention(8, 8, 2)
    x = normal(2, 300, 8)
    implementation = build(layer, name)

    layer.attend = core

    assert torch.equal(implementation(x), layer(x))
