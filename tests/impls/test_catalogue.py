"""The grammar of an implementation's name."""

import pytest

from impls.catalogue import parse, split


def test_a_name_has_a_base_and_options() -> None:
    """Options are numbers, truth values or text, as they are written; a list of names keeps them together."""
    for name, base, options in (
        ("sdpa", "sdpa", {}),
        ("package.module:box.attribute", "package.module:box.attribute", {}),
        ("online[block_tokens=64]", "online", {"block_tokens": 64}),
        ("mine:adapt[a=1.5, b=true,c=max-autotune]", "mine:adapt", {"a": 1.5, "b": True, "c": "max-autotune"}),
        ("mine:adapt[a='64']", "mine:adapt", {"a": "64"}),
    ):
        parsed = parse(name)
        assert (parsed.base, dict(parsed.options)) == (base, options)
    assert split("eager, online[a=1,b=2],sdpa") == ["eager", "online[a=1,b=2]", "sdpa"]


@pytest.mark.parametrize(
    "name",
    ["", "online[", "online]", "online[]", "online[a]", "online[a=]", "online[a=1]x", "[a=1]", "online[a=1,a=2]"],
)
def test_a_name_that_breaks_the_grammar_is_refused(name: str) -> None:
    """The refusal has the rule and what came."""
    with pytest.raises(ValueError, match="twice" if "a=2" in name else "option=value") as refused:
        parse(name)

    assert repr(name) in str(refused.value)
