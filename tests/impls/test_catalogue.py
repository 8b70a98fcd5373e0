"""The grammar of an implementation's name."""

import pytest

from impls.catalogue import parse, split


@pytest.mark.parametrize(
    ("name", "base", "options"),
    [
        ("sdpa", "sdpa", {}),
        ("package.module:box.attribute", "package.module:box.attribute", {}),
        ("online[block_tokens=64]", "online", {"block_tokens": 64}),
        ("mine:adapt[a=1.5, b=true,c=max-autotune]", "mine:adapt", {"a": 1.5, "b": True, "c": "max-autotune"}),
        ("mine:adapt[a='64']", "mine:adapt", {"a": "64"}),
    ],
)
def test_a_name_has_a_base_and_options(name: str, base: str, options: dict[str, object]) -> None:
    """Options are numbers, truth values or text, as they are written."""
    parsed = parse(name)

    assert (parsed.base, dict(parsed.options)) == (base, options)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        *((name, "option=value") for name in ("", "online[", "online]", "online[]", "online[a]", "online[a=]")),
        *((name, "option=value") for name in ("online[a=1]x", "[a=1]")),
        ("online[a=1,a=2]", "twice"),
    ],
)
def test_a_name_that_breaks_the_grammar_is_refused(name: str, rule: str) -> None:
    """The refusal holds the rule and what came."""
    with pytest.raises(ValueError, match=rule) as refused:
        parse(name)

    assert repr(name) in str(refused.value)


def test_a_comma_in_brackets_divides_options() -> None:
    """A comma list of names keeps the options of each name together."""
    assert split("eager, online[a=1,b=2],sdpa") == ["eager", "online[a=1,b=2]", "sdpa"]
