"""Models of libraries, without any download."""

import json
import sys
from pathlib import Path

import pytest
import torch

from impls import Unresolved
from impls.models import sources, watch
from impls.models.sources import make

BERT = "hidden_size=16,num_hidden_layers=1,num_attention_heads=2,intermediate_size=16,vocab_size=8"


TINY = "tests.tiny_models"


def has(library: str) -> None:
    """Skip the test if a library is not installed."""
    try:
        sources.library(library)
    except Unresolved as reason:
        pytest.skip(str(reason))


def test_timm_has_models_by_name() -> None:
    """With options of its constructor, and its usual input."""
    has("timm")
    model = make("timm:vit_tiny_patch16_224[depth=1,img_size=32,embed_dim=24]").eval()
    assert model.item == (3, 32, 32)
    with torch.inference_mode():
        (core,) = watch.cores(model, torch.randn(1, *model.item))
    assert (core.layer, core.class_name, core.shapes[0]) == ("blocks.0.attn", "Attention", (1, 3, 5, 8))


def test_transformers_has_models_by_the_class_of_a_config() -> None:
    """Padding becomes a mask, and texts are given as embeddings."""
    has("transformers")
    model = make(f"transformers:BertConfig[{BERT},tokens=6,padding=2]").eval()
    assert model.item == (6, 16)
    with torch.inference_mode():
        (core,) = watch.cores(model, torch.randn(3, *model.item))
    assert core.by_sdpa
    assert core.mask.endswith("6, 6]")


def test_transformers_has_models_by_a_config_file(tmp_path: Path) -> None:
    """As a repository of a model has it."""
    has("transformers")
    values = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", "vocab_size": 8, **values}))
    assert make(f"transformers:{tmp_path / 'config.json'}").item == (128, 16)


@pytest.mark.parametrize(
    ("name", "item", "cores"),
    [
        ("T5Config[d_model=16,d_kv=8,num_heads=2,d_ff=16,num_layers=1,vocab_size=8,tokens=5]", (5, 16), 3),
        ("SegformerConfig[num_encoder_blocks=1,input=3x32x32]", (3, 32, 32), 2),
    ],
)
def test_what_a_config_leaves_out_is_filled_in(name: str, item: tuple[int, ...], cores: int) -> None:
    """An encoder and decoder take the same tokens; a configuration without a size of images has the usual one."""
    has("transformers")
    model = make(f"transformers:{name}").eval()
    assert model.item == item
    with torch.inference_mode():
        assert len(watch.cores(model, torch.randn(2, *model.item))) == cores


@pytest.mark.parametrize(
    ("library", "name", "words"),
    [
        ("timm", "timm:vit_smal_patch16_224", "did you mean vit_small_patch16_224"),
        ("torchvision", "torchvision:vit_b_17", "did you mean vit_b_16"),
        ("transformers", "transformers:BertConfi", "did you mean BertConfig"),
        ("transformers", "transformers:no/such/config.json", "can't be read as a config.json"),
        ("transformers", f"transformers:BertConfig[{BERT},tokens=4,padding=4]", "padding < tokens"),
    ],
)
def test_an_unknown_model_is_said_in_one_line(library: str, name: str, words: str) -> None:
    """With the names that are near."""
    has(library)
    with pytest.raises(Unresolved) as error:
        make(name)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_library_that_is_missing_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says how to install it."""
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(Unresolved, match=r"pip install -c constraints\.txt timm"):
        sources.made("timm", "vit_tiny_patch16_224", {})


@pytest.mark.parametrize(
    ("name", "shape", "output"),
    [
        (f"{TINY}:Net[input=5x16]", (5, 16), (2, 5, 16)),
        (f"{TINY}:Net[input={TINY}:inputs]", (5, 16), (2, 5, 16)),
        (f"{TINY}:Net[kind=written,channels=8,input=5x8]", (5, 8), (2, 5, 8)),
        (f"{TINY}:Net[input=5x16,at=layers.1]", (5, 16), (2, 5, 16)),
        (f"{TINY}:Heads[input=5x16,at=attention]", (5, 16), (2, 5, 16)),
    ],
)
def test_a_model_takes_the_input_of_its_name(name: str, shape: tuple[int, ...], output: tuple[int, ...]) -> None:
    """Its shape, or the inputs that a function returns; a layer in a model gets what it gets there."""
    model = make(name)
    assert model.item == shape
    with torch.no_grad():
        assert model(torch.randn(2, *shape)).shape == output


def test_a_head_of_zeros_gets_numbers() -> None:
    """Otherwise every attention would give the right output."""
    model = make(f"{TINY}:Heads[input=5x16]").eval()
    with torch.no_grad():
        assert float(model(torch.randn(1, 5, 16)).std()) > 0.001


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (f"{TINY}:broken[input=5x16]", "OSError: no such weights"),
        (f"{TINY}:no_module[input=5x16]", "must return a torch.nn.Module, got int"),
        (f"{TINY}:missing[input=5x16]", "has no attribute 'missing'"),
        (f"{TINY}:Net[kind=other,input=5x16]", "can't be made: KeyError"),
        (f"{TINY}:Net[input=5x16,at=layers.7]", "has no module 'layers.7'"),
        (f"{TINY}:Net[depth=1]", "give --input"),
    ],
)
def test_what_makes_no_model_is_said_in_one_line(name: str, words: str) -> None:
    """The rule, or the library's own error."""
    with pytest.raises(Unresolved) as error:
        make(name)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
