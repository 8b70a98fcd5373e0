"""An answer in the terminal and as Markdown."""

import json

from bench.analyse import advice as analyse
from bench.show.advice.blocks import after, as_json, before, stopped
from bench.show.blocks import Block
from bench.show.markdown import markdown
from bench.show.terminal.console import render, rendered
from tests.advice import POINT, advised, looks


def screen(blocks: list[Block]) -> str:
    """Return what a terminal shows."""
    return rendered(render(blocks))


def test_a_look_begins_with_the_bound_and_has_no_table() -> None:
    """In Markdown it is bold, and the kinds of layers follow. A small bound ends with a way on."""
    seen = analyse.seen(POINT, looks(core_share=0.05))
    assert screen(before(seen)).startswith("attention takes")
    text = markdown([*before(seen), *after(seen)])
    assert text.startswith("**attention takes")
    assert "blocks.0.attn" in text
    assert "|" not in text
    assert "--anyway" in screen(stopped(seen))


def test_the_answer_fits_a_screen() -> None:
    """The table with the model as it is, the recommendation, and its lines, which Markdown has as code."""
    answer = after(advised({"as_is": 1.0, "eager": 0.8, "compiled": 1.2}))
    text, written = screen(answer), markdown(answer)
    assert len(text.splitlines()) < 24
    assert "use eager: 1.2" in text
    assert "baseline" in text
    assert "| `eager` | 1.2" in written
    assert "**use eager: 1.2" in written
    assert "```python\nfor module in model.modules():" in written
    assert "    module.fused_attn = False" in written


CONTRACT = {
    *("name", "status", "speedup", "speedup_low", "speedup_high"),
    *("predicted", "predicted_low", "predicted_high", "kernels"),
}


def test_the_keys_are_a_contract() -> None:
    """One object; a number that isn't known is null."""
    content = json.loads(as_json([advised({"as_is": 1.0, "eager": 0.8})]))
    assert {"model", "share", "bound", "alternatives", "recommendation"} <= {*content}
    assert content["model"] == "timm:vit_tiny_patch16_224"
    assert content["recommendation"] == "eager"
    by_name = {each["name"]: each for each in content["alternatives"]}
    assert all({*each} >= CONTRACT for each in by_name.values())
    assert by_name["sdpa"]["speedup"] is None
    assert by_name["eager"]["speedup_low"] > 1


def test_no_recommendation_is_null() -> None:
    """And several points stand beside the first."""
    one = advised({"as_is": 1.0, "eager": 1.5})
    content = json.loads(as_json([one, one]))
    assert content["recommendation"] is None
    assert len(content["points"]) == 2
