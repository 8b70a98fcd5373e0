"""The grammar of names of implementations and modules."""

import pytest

from impls.catalogue import name_of, split, with_option


def test_a_name_has_a_base_and_options() -> None:
    """Options are Python literals, nested ones too, or text as it is written."""
    for name, base, options in (
        ("sdpa", "sdpa", {}),
        ("online[block_tokens=64]", "online", {"block_tokens": 64}),
        ("mine:adapt[a=1.5, b=true,c=max-autotune]", "mine:adapt", {"a": 1.5, "b": True, "c": "max-autotune"}),
        ("timm:vit[at=blocks.0.attn, input=8x3x224x224]", "timm:vit", {"at": "blocks.0.attn", "input": "8x3x224x224"}),
        ("mine:L[a=(7, 7),b=[1, (2, [3])],c=None]", "mine:L", {"a": (7, 7), "b": [1, (2, [3])], "c": None}),
        ("mine:L[a=True,b=False,c=false,d=-1e-3]", "mine:L", {"a": True, "b": False, "c": False, "d": -1e-3}),
        ("mine:L[a='x, [y',b=\"it's\",c=' ']", "mine:L", {"a": "x, [y", "b": "it's", "c": " "}),
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


@pytest.mark.parametrize(
    ("layer", "does"),
    [
        ("vit", False),
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
    ("name", "words"),
    [
        *((name, "option=value") for name in ("", "online[", "online]", "online[]", "online[a]", "online[a=]")),
        *((name, "option=value") for name in ("online[a=1]x", "[a=1]")),
        ("online[a=1,a=2]", "twice"),
        *((f"mine:L[a={value}]", "can't be read") for value in ("(1, 2", "[1, 2)", "(1, x)", "{1: }", "'open")),
    ],
)
def test_a_name_that_breaks_the_grammar_is_refused(name: str, words: str) -> None:
    """The refusal has the rule and the value; a malformed literal isn't taken for text."""
    with pytest.raises(ValueError, match=words) as refused:
        name_of(name)
    assert repr(name) in str(refused.value)
