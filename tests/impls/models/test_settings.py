"""The settings of a model's attention."""

import pytest
import torch

import impls
from impls.models import watch
from impls.models.model import Model
from impls.models.sources import make

TINY = "tests.tiny_models"


def tiny(name: str) -> Model:
    """Return a tiny model."""
    return make(f"{TINY}:{name}").eval()


@pytest.mark.parametrize(
    ("model", "setting"),
    [
        ("Net[input=5x16]", "as_is"),
        ("Net[input=5x16]", "sdpa"),
        ("Net[input=5x16]", "sdpa_math"),
        ("Net[input=5x16]", "sdpa_flash"),
        ("Net[input=5x16]", "manual"),
        ("Net[input=5x16]", "online[block_tokens=2]"),
        ("Net[input=5x16]", f"{TINY}:right"),
        ("Net[kind=causal,input=5x16]", "online"),
        ("Net[kind=masked,input=5x16]", f"{TINY}:with_mask"),
        ("Net[kind=switched,input=5x16]", "eager"),
        ("Heads[input=5x16]", "sdpa"),
        ("Heads[input=5x16]", f"{TINY}:right"),
        ("Encoder[input=5x16]", "sdpa_math"),
        ("Net[input=5x16,at=layers.1]", "sdpa_math"),
    ],
)
def test_a_setting_computes_the_same(model: str, setting: str) -> None:
    """And leaves the model as it was."""
    layer = tiny(model)
    x = torch.randn(3, *layer.item)
    with torch.inference_mode():
        before = [core.operator for core in watch.cores(layer, x)]
        torch.testing.assert_close(impls.build(layer, setting)(x), layer(x))
        assert [core.operator for core in watch.cores(layer, x)] == before


@pytest.mark.parametrize(
    ("model", "setting", "reason"),
    [
        ("Net[kind=written,input=5x16]", "sdpa", "computes 2 of 2 attention cores by itself, in Written"),
        ("Net[kind=written,input=5x16]", f"{TINY}:right", "no switch to F.scaled_dot_product_attention"),
        ("Net[input=5x16]", "eager", "no switch to unfused attention"),
        ("Heads[input=5x16]", "eager", "_native_multi_head_attention"),
        ("Net[input=5x16]", "sdpa_cudnn", "can't compute the model's attention"),
        ("Net[kind=masked,input=5x16]", f"{TINY}:right", "has a mask tensor, and this attend declares no keyword"),
        ("Net[kind=masked,input=5x16]", "online", "a mask tensor"),
        ("Net[kind=causal,input=5x16]", f"{TINY}:right", "has a causal mask"),
        ("plain[input=5x16]", "sdpa", "no attention was found"),
    ],
)
def test_a_setting_that_a_model_lacks_is_unsupported(model: str, setting: str, reason: str) -> None:
    """With a reason in words: no switch, a mask that it can't do, or a backend that isn't there."""
    with pytest.raises(impls.Unsupported) as error:
        impls.build(tiny(model), setting)
    assert reason in str(error.value)


def test_timms_switch_is_one_of_modules() -> None:
    """It is set on live modules, of a copy."""
    layer = tiny("Net[kind=switched,input=5x16]")
    x = torch.randn(1, *layer.item)
    unfused = impls.build(layer, "eager")
    assert isinstance(unfused, Model)
    with torch.inference_mode():
        assert {core.operator for core in watch.cores(unfused, x)} == {watch.UNFUSED}
        assert all(core.is_fused for core in watch.cores(layer, x))
    assert {id(own) for own in unfused.parameters()} == {id(own) for own in layer.parameters()}


def test_the_fast_path_is_off_inside_a_call_alone() -> None:
    """A process keeps its switches."""
    layer = tiny("Heads[input=5x16]")
    with torch.inference_mode():
        impls.build(layer, "sdpa")(torch.randn(1, *layer.item))
    assert torch.backends.mha.get_fastpath_enabled()


def test_a_wrong_core_gives_another_output() -> None:
    """Also where the library initialises its head with zeros."""
    layer = tiny("Heads[input=5x16]")
    x = torch.randn(1, *layer.item)
    with torch.inference_mode():
        difference = (impls.build(layer, f"{TINY}:wrong")(x) - layer(x)).abs().max() / layer(x).abs().max()
    assert float(difference) > 0.01


def test_settings_are_for_models() -> None:
    """A layer of the suite has no as_is to be compiled."""
    with pytest.raises(impls.Unsupported, match="whole models"):
        impls.build(impls.ViTAttention(8, 8, 2), "compiled")
