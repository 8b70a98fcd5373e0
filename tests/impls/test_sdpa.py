"""scaled_dot_product_attention with one backend named: it runs that one, or says why it can't."""

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend

import impls
from impls.attend import sdpa
from impls.layers.vit import ViTAttention
from tests.impls.hardware import LACKING
from tests.impls.reference import normal


@pytest.mark.parametrize("name", LACKING)
@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device may have these backends")
def test_a_backend_that_the_machine_lacks_is_unsupported_with_torchs_reason(name: str) -> None:
    """Nothing else runs in its place."""
    implementation = impls.build(ViTAttention(8, 8, 2), name)
    with pytest.raises(impls.Unsupported, match="No viable backend"):
        implementation(normal(1, 5, 8))


def test_what_a_backend_cannot_do_is_unsupported_with_the_obstacle() -> None:
    """Flash attention on the CPU wants values as wide as keys, and torch's words for it reach the reader."""
    with pytest.raises(impls.Unsupported, match="to have the same last dimension"):
        sdpa.pinned(SDPBackend.FLASH_ATTENTION)(normal(1, 2, 5, 8), normal(1, 2, 5, 8), normal(1, 2, 5, 4), 1.0)


@pytest.mark.slow
def test_flex_computes_the_layer_and_is_marked_as_compiling() -> None:
    """flex_attention gives what eager gives, and a run of it without a graph would be a fallback."""
    layer = ViTAttention(32, 32, 2).eval()
    x = normal(2, 16, 32)
    with torch.inference_mode():
        np.testing.assert_allclose(impls.build(layer, "flex")(x), layer(x), atol=1e-5)
    assert impls.compiles("flex")
    assert impls.compiles("compiled_sdpa")
    assert not impls.compiles("sdpa")
