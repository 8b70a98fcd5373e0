"""An answer as Markdown."""

from bench.analyse import advice as analyse
from bench.show.advice.markdown import markdown
from tests.advice import POINT, advised, looks


def test_it_begins_with_the_bound_and_ends_with_what_to_use() -> None:
    """A table of the settings stands between."""
    text = markdown(advised({"as_is": 1.0, "eager": 0.8}))
    assert text.startswith("**Attention takes")
    assert "| `eager` | 1.2" in text
    assert "**Use eager: 1.2" in text
    assert "module.fused_attn = False" in text


def test_a_look_alone_has_no_table() -> None:
    """The bound, and what was found."""
    text = markdown(analyse.seen(POINT, looks()))
    assert "|" not in text
    assert "blocks.0.attn" in text
