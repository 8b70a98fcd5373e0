"""The grammar of names: those of implementations and those of modules."""

from typing import Any

import pytest

from impls.catalogue import Limits, name_of, split, with_option


def test_a_name_has_a_base_and_options() -> None:
    """Options are Python literals, nested ones too, or text as it is written."""
    for name, base, options in (
        ("sdpa", "sdpa", {}),
        ("package.module:box.attribute", "package.module:box.attribute", {}),
        ("online[block_tokens=64]", "online", {"block_tokens": 64}),
        ("mine:adapt[a=1.5, b=true,c=max-autotune]", "mine:adapt", {"a": 1.5, "b": True, "c": "max-autotune"}),
        ("mine:adapt[a='64']", "mine:adapt", {"a": "64"}),
        ("timm:vit[at=blocks.0.attn, input=8x3x224x224]", "timm:vit", {"at": "blocks.0.attn", "input": "8x3x224x224"}),
        ("mine:L[a=(7, 7),b=[1, (2, [3])],c=None]", "mine:L", {"a": (7, 7), "b": [1, (2, [3])], "c": None}),
        ("mine:L[a=True,b=False,c=false,d=-1e-3]", "mine:L", {"a": True, "b": False, "c": False, "d": -1e-3}),
        ("mine:L[a='x, [y',b=\"it's\",c=' ']", "mine:L", {"a": "x, [y", "b": "it's", "c": " "}),
        ("mine:L[input=my.inputs:make,a=64px]", "mine:L", {"input": "my.inputs:make", "a": "64px"}),
    ):
        parsed = name_of(name)
        assert (parsed.base, dict(parsed.options)) == (base, options)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mine:L", "mine:L[input=2x3]"),
        ("mine:L[a='b, c',d=(1, 2)]", "mine:L[a='b, c',d=(1, 2),input=2x3]"),
        ("mine:L[input=4x5, at=b.0]", "mine:L[input=2x3,at=b.0]"),
    ],
)
def test_an_option_is_added_to_a_name_or_replaced(name: str, expected: str) -> None:
    """The others stay as they are written."""
    assert with_option(name, "input", "2x3") == expected


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        ("eager, online[a=1,b=2],sdpa", ["eager", "online[a=1,b=2]", "sdpa"]),
        ("mine:L[a=(1, 2),b=[3, 4]],vit", ["mine:L[a=(1, 2),b=[3, 4]]", "vit"]),
        ("mine:L[a='x],y'],vit", ["mine:L[a='x],y']", "vit"]),
        ('mine:L[a="it\'s, so"],vit', ['mine:L[a="it\'s, so"]', "vit"]),
    ],
)
def test_a_list_of_names_keeps_brackets_and_texts_together(names: str, parts: list[str]) -> None:
    """Commas inside them separate nothing."""
    assert split(names) == parts


@pytest.mark.parametrize("value", ["(1, 2", "[1, 2)", "(1, x)", "{1: }", "'open", "(lambda: 1)"])
def test_a_value_that_begins_like_a_literal_and_is_none_is_refused(value: str) -> None:
    """Such a value is no text by mistake; the refusal has what came."""
    with pytest.raises(ValueError, match="can't be read") as refused:
        name_of(f"mine:L[a={value}]")
    assert value in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("layer", "does"),
    [
        ("vit", False),
        ("mine:L", False),
        ("mine:L[dim=64,at=blocks.0]", False),
        ("mine:L[input=2x5x16]", True),
        ("timm:vit_tiny_patch16_224", True),
        ("transformers:BertConfig[tokens=6]", True),
    ],
)
def test_a_librarys_model_and_one_with_an_input_shape_themselves(layer: str, does: bool) -> None:
    """No column says their tokens, widths and heads."""
    assert name_of(layer).shapes_itself is does


@pytest.mark.parametrize(
    "name",
    ["", "online[", "online]", "online[]", "online[a]", "online[a=]", "online[a=1]x", "[a=1]", "online[a=1,a=2]"],
)
def test_a_name_that_breaks_the_grammar_is_refused(name: str) -> None:
    """The refusal has the rule and what came."""
    with pytest.raises(ValueError, match="twice" if "a=2" in name else "option=value") as refused:
        name_of(name)

    assert repr(name) in str(refused.value)


def test_an_accuracy_is_declared_by_an_entry_or_by_an_option() -> None:
    """Names of others declare none."""
    declared = {
        "sageattention": "int8", "flash_attn_3[dtype=float8_e4m3]": "float8_e4m3", "flash_attn_3": "", "sdpa": "",
        "mine:attend[dtype=int4]": "",
    }  # fmt: skip
    assert {name: name_of(name).accuracy for name in declared} == declared


HOPPER = Limits((9, 0), is_of_one_generation=True, width_step=8)
FEW = Limits(widths=(64, 128), gradients=False)
BFLOAT16 = {"dtype": "bfloat16", "widths": (64, 64, 64), "capability": (9, 0), "wants_gradients": False}


@pytest.mark.parametrize(
    ("limits", "asked", "reason"),
    [
        (Limits(), {}, ""),
        (Limits(), {"capability": None, "wants_gradients": True, "widths": (7, 7, 7)}, ""),
        (Limits(), {"capability": (12, 1)}, ""),
        (Limits(), {"capability": (7, 5)}, "it takes a GPU of compute capability 8.0 or newer, got 7.5"),
        (HOPPER, {"widths": (256, 256, 256)}, ""),
        (HOPPER, {"capability": (10, 0)}, "it takes a GPU of compute capability 9.x, got 10.0"),
        (HOPPER, {"capability": (8, 9)}, "it takes a GPU of compute capability 9.x, got 8.9"),
        (HOPPER, {"widths": (100, 100, 100)}, "it takes heads of up to 256 channels in steps of 8, got 100"),
        (HOPPER, {"widths": (264, 264, 264)}, "it takes heads of up to 256 channels in steps of 8, got 264"),
        (HOPPER, {"dtype": "float32"}, "it takes bfloat16 and float16, got float32"),
        (FEW, {"widths": (128, 128, 128)}, ""),
        (FEW, {"widths": (96, 96, 96)}, "it takes heads of 64 or 128 channels, got 96"),
        (FEW, {"wants_gradients": True}, "it computes no gradients"),
        (Limits(), {"widths": (8, 8, 64)}, "it takes queries, keys and values of one width, got 8, 8 and 64"),
        (Limits(have_one_width=False), {"widths": (8, 8, 64)}, ""),
        (Limits(have_one_width=False), {"widths": (8, 8, 264)}, "it takes heads of up to 256 channels, got 264"),
    ],
)
def test_what_a_kernel_can_not_take_has_one_reason(limits: Limits, asked: dict[str, Any], reason: str) -> None:
    """It says what came, and what could have come."""
    assert limits.refusal(**{**BFLOAT16, **asked}) == reason
