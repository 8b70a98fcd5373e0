"""Models by their names, without any download."""

import json
import sys
from pathlib import Path

import pytest
import torch

import impls
from bench.modules import sources
from bench.modules.graph.cores import look
from impls import Unresolved
from tests.make.points import made

BERT = "hidden_size=16,num_hidden_layers=1,num_attention_heads=2,intermediate_size=16,vocab_size=8"


def has(name: str) -> None:
    """Skip the test if the library of a model's name is not installed."""
    try:
        sources.library(name.partition(":")[0])
    except Unresolved as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize(
    ("name", "item", "cores"),
    [
        ("timm:vit_tiny_patch16_224[depth=1,img_size=32,embed_dim=24]", (3, 32, 32), 1),
        (f"transformers:BertConfig[{BERT},tokens=6,padding=2]", (6, 16), 1),
        (
            "transformers:T5Config[d_model=16,d_kv=8,num_heads=2,d_ff=16,num_layers=1,vocab_size=8,tokens=5]",
            (5, 16),
            3,
        ),
        ("transformers:SegformerConfig[num_encoder_blocks=1,input=1x3x32x32]", (3, 32, 32), 2),
    ],
)
def test_a_library_has_models_by_name(name: str, item: tuple[int, ...], cores: int) -> None:
    """With options of the constructor or of the class of a config; texts are given as embeddings, padding is a mask.

    Missing parts of a config are filled in: encoder and decoder take the same tokens, an image has its usual size.
    """
    has(name)
    model = made(name).eval()
    assert model.items == (item,)
    with torch.inference_mode():
        first, *others = look(model, (torch.randn(3, *model.items[0]),)).cores
    assert len(others) == cores - 1
    if "vit" in name:
        assert (first.core.layer, first.core.class_name) == ("inner.blocks.0.attn", "Attention")
        assert first.core.shapes[0] == (3, 3, 5, 8)
    if "padding" in name:
        assert first.core.by_sdpa
        assert first.core.mask.endswith("6, 6]")


def test_transformers_has_models_by_a_config_file(tmp_path: Path) -> None:
    """As a repository of a model has it."""
    has("transformers")
    values = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", "vocab_size": 8, **values}))
    assert made(f"transformers:{tmp_path / 'config.json'}").items == ((128, 16),)


GPT2 = "GPT2Config[n_embd=16,n_layer=2,n_head=2,vocab_size=8,bos_token_id=0,eos_token_id=0,tokens=6"
T5 = "T5Config[d_model=16,d_kv=8,num_heads=2,d_ff=16,num_layers=1,vocab_size=8,tokens=6"


@pytest.mark.parametrize(
    "name",
    [
        f"BertConfig[{BERT},tokens=6,padding=2,at=encoder.layer.0.attention.self]",
        f"{GPT2},padding=2,at=h.1.attn]",
        f"{T5},padding=2,at=decoder.block.0.layer.0.SelfAttention]",
        f"{T5},padding=2,at=decoder.block.0.layer.1.EncDecAttention]",
    ],
)
def test_a_layer_gets_the_mask_that_a_setting_expects(name: str) -> None:
    """It gets no cache of an earlier call; a layer between encoder and decoder gets the encoder's keys."""
    has("transformers")
    alone = made(f"transformers:{name}")
    x = torch.randn(3, *alone.items[0])
    with torch.inference_mode():
        y = alone(x)
        for setting in ("eager", "sdpa_math", "eager"):
            torch.testing.assert_close(impls.build(alone, setting)(x), y)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("timm:vit_smal_patch16_224", "did you mean vit_small_patch16_224"),
        ("transformers:BertConfi", "did you mean BertConfig"),
        ("transformers:no/such/config.json", "can't be read as a config.json"),
        (f"transformers:BertConfig[{BERT},tokens=4,padding=4]", "padding < tokens"),
        (f"transformers:BertConfig[{BERT},input=1x4x16]", "[tokens=64,padding=8] or [input=mymodel:inputs]"),
        ("transformers:WhisperConfig[encoder_layers=1,decoder_layers=1]", "[input=mymodule:inputs], where inputs()"),
    ],
)
def test_what_makes_no_model_is_said_in_one_line(name: str, words: str) -> None:
    """With the names that are near, the rule, or the library's own error."""
    has(name)
    with pytest.raises(Unresolved) as error:
        made(name)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_library_that_is_missing_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal says how to install the library."""
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(Unresolved, match=r"pip install -c constraints\.txt timm"):
        made("timm:vit_tiny_patch16_224")


@pytest.mark.parametrize(
    ("name", "item"),
    [
        ("timm:vit_tiny_patch16_224[depth=1,img_size=(64,32),in_chans=1]", (1, 64, 32)),
        ("transformers:SegformerConfig[num_encoder_blocks=1]", None),
        ("torchvision:squeezenet1_0", (3, 224, 224)),
        ("torchvision:r3d_18", None),
    ],
)
def test_images_have_a_size_that_somebody_says(name: str, item: tuple[int, ...] | None) -> None:
    """The name, the configuration, the model or its weights give it; else the refusal says what to write."""
    has(name)
    if item:
        assert made(name).items == (item,)
    else:
        with pytest.raises(Unresolved, match=r"has no default input size; .*\[.*input=8x3x512x512\]"):
            made(name)
