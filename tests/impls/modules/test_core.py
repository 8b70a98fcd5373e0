"""The settings of a model's attention."""

import pytest
import torch

import impls
from impls.modules import watch
from impls.modules.wrapper import Wrapper
from tests.points import made

TINY = "tests.tiny_models"


def tiny(name: str) -> Wrapper:
    """Return a tiny model of tokens `[5, 16]`; options in its name are those of the model."""
    base, _, options = name.partition("[")
    return made(f"{TINY}:{base}[input=1x5x16{',' * bool(options)}{options or ']'}").eval()


@pytest.mark.parametrize(
    ("model", "setting"),
    [
        ("Net", "as_is"),
        ("Net", "sdpa"),
        ("Net", "sdpa_math"),
        ("Net", "sdpa_flash"),
        ("Net", "manual"),
        ("Net", "online[block_tokens=2]"),
        ("Net", f"{TINY}:right"),
        ("Net[kind=causal]", "online"),
        ("Net[kind=masked]", f"{TINY}:with_mask"),
        ("Net[kind=switched]", "eager"),
        ("Heads", "sdpa"),
        ("Heads", f"{TINY}:right"),
        ("Encoder", "sdpa_math"),
        ("Net[at=layers.1]", "sdpa_math"),
    ],
)
def test_a_setting_computes_the_same(model: str, setting: str) -> None:
    """And leaves the model as it was, and the switches of the process."""
    layer = tiny(model)
    x = torch.randn(3, *layer.item)
    with torch.inference_mode():
        before = [core.operator for core in watch.cores(layer, x)]
        torch.testing.assert_close(impls.build(layer, setting)(x), layer(x))
        assert [core.operator for core in watch.cores(layer, x)] == before
    assert torch.backends.mha.get_fastpath_enabled()


@pytest.mark.parametrize(
    ("model", "setting", "reason"),
    [
        ("Net[kind=written]", "sdpa", "computes 2 of 2 attention cores by itself, in Written"),
        ("Net[kind=written]", f"{TINY}:right", "no switch to F.scaled_dot_product_attention"),
        ("Net", "eager", "no switch to unfused attention"),
        ("Heads", "eager", "_native_multi_head_attention"),
        ("Net", "sdpa_cudnn", "can't compute the model's attention"),
        ("Net[kind=masked]", f"{TINY}:right", "has a mask tensor, and this attend declares no keyword"),
        ("Net[kind=masked]", "online", "a mask tensor"),
        ("Net[kind=causal]", f"{TINY}:right", "has a causal mask"),
        ("plain", "sdpa", "no attention was found"),
    ],
)
def test_a_setting_that_a_model_lacks_is_unsupported(model: str, setting: str, reason: str) -> None:
    """With a reason in words: no switch, a mask that it can't do, or a backend that isn't there."""
    with pytest.raises(impls.Unsupported) as error:
        impls.build(tiny(model), setting)
    assert reason in str(error.value)


def test_a_setting_that_the_library_refuses_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that can't compute what the model's configuration asks for."""

    def refuse(*_: object, **__: object) -> None:
        raise ValueError("no soft cap")

    layer = tiny("Net")
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", refuse)
    with pytest.raises(impls.Unsupported, match="refuses it: no soft cap"):
        impls.build(layer, "sdpa")


def test_timms_switch_is_one_of_modules() -> None:
    """It is set on live modules, of a copy."""
    layer = tiny("Net[kind=switched]")
    x = torch.randn(1, *layer.item)
    unfused = impls.build(layer, "eager")
    assert isinstance(unfused, Wrapper)
    with torch.inference_mode():
        assert {core.operator for core in watch.cores(unfused, x)} == {watch.UNFUSED}
        assert all(core.is_fused for core in watch.cores(layer, x))
    assert {id(own) for own in unfused.parameters()} == {id(own) for own in layer.parameters()}


def test_a_wrong_core_gives_another_output() -> None:
    """Also where the library initialises its head with zeros: otherwise every attention would give the right output."""
    layer = tiny("Heads")
    x = torch.randn(1, *layer.item)
    with torch.inference_mode():
        y = layer(x)
        difference = (impls.build(layer, f"{TINY}:wrong")(x) - y).abs().max() / y.abs().max()
    assert float(y.std()) > 0.001
    assert float(difference) > 0.01


def test_settings_are_for_models() -> None:
    """A layer of the suite has no as_is to be compiled."""
    with pytest.raises(impls.Unsupported, match="whole models"):
        impls.build(impls.ViTAttention(8, 8, 2), "compiled")
