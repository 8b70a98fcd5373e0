"""The attention of a model as it runs."""

import pytest
import torch

from impls.modules import watch
from tests import tiny_models
from tests.make.points import made


def cores(name: str) -> list[watch.Core]:
    """Return the cores of a call of a tiny model in inference."""
    model = made(f"tests.tiny_models:{name}")
    with torch.inference_mode():
        return watch.cores(model, torch.randn(3, *model.items[0]))


def test_a_fused_core_has_shapes_and_strides() -> None:
    """Those of views of a packed projection, with the module that it belongs to."""
    first, second = cores("Net[input=1x5x16]")
    assert (first.layer, second.layer, first.class_name) == ("layers.0", "layers.1", "Attention")
    assert first.shapes == ((3, 2, 5, 8),) * 3
    assert first.strides == ((240, 8, 48, 1),) * 3
    assert first.by_sdpa
    assert first.is_fused
    assert (first.mask, first.causal, first.dropout, first.dtype) == ("", False, 0.0, "float32")


def test_masks_are_seen() -> None:
    """A tensor with its shape, or a causal one."""
    for kind, mask, causal in (("masked", "float32 [5, 5]", False), ("causal", "", True)):
        core = cores(f"Net[kind={kind},input=1x5x16]")[0]
        assert (core.mask, core.causal) == (mask, causal)


def test_an_unfused_core_is_known_by_its_operators() -> None:
    """A product, a softmax and a product; a model without attention has no core."""
    first, second = cores("Net[kind=written,input=1x5x16]")
    assert {(core.operator, core.by_sdpa) for core in (first, second)} == {(watch.UNFUSED, False)}
    assert first.shapes[0] == (3, 2, 5, 8)
    assert first.lines.startswith(f"{tiny_models.__file__}:")
    assert cores("plain[input=1x5x16]") == []


@pytest.mark.parametrize(
    ("name", "operator", "layer"),
    [
        ("Encoder[input=1x5x16]", "_transformer_encoder_layer_fwd", "encoder.layers.0"),
        ("Heads[input=1x5x16]", "_native_multi_head_attention", "attention"),
    ],
)
def test_a_fast_path_stays_one(name: str, operator: str, layer: str) -> None:
    """Watching changes nothing: torch's own modules still run as one operator."""
    core = cores(name)[0]
    assert (core.operator, core.layer, core.is_whole) == (operator, layer, True)


def test_layers_that_are_alike_share_a_trace() -> None:
    """The tensors of one trace are held for all of them; each core has one."""
    model = made("tests.tiny_models:Net[kind=written,input=1x5x16]").eval()
    with torch.inference_mode(), watch.watched(model) as seen:
        model(torch.randn(3, *model.items[0]))
    assert [*seen.traces] == [0, 1]
    assert seen.traces[0] is seen.traces[1]
