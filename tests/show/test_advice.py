"""The answer of `advise`: its sentences, in the terminal, as Markdown and as JSON."""

import dataclasses
import json
import re
from typing import Any

import pytest
from msgspec import structs

from bench.analyse import advice as analyse
from bench.analyse.advice import Advice
from bench.plan.core import UNFUSED, Softmax
from bench.show import advice as words
from bench.show.advice import after, as_json, before, ending
from bench.show.markdown import markdown
from bench.show.terminal.console import rendered
from bench.store.looks import Seen, Tried
from impls.catalogue import GRAPH
from tests.make.advice import FLAGS, POINT, advised, core, looks, seen

BY_GRAPH = {"sdpa": Tried("ok", "", GRAPH)}

CAP = Softmax("gate", "model.py:3", "a soft cap")


def test_the_answer_fits_a_screen() -> None:
    """The table with the unchanged model, the recommendation, and its lines, which Markdown has as code."""
    advice = advised({"as_is": 1.0, "eager": 0.8, "compiled": 1.2})
    written = markdown(after(advice))
    whole = [*before(advice), *after(advice), *ending([advice], ["Other processes disturbed 1 of 3 cases."])]
    assert len(rendered(whole).splitlines()) < 22
    assert "| `as_is` | baseline" in written
    assert "| `eager` | 1.2" in written
    assert "**Use eager: the fastest, 1.2" in written
    assert "```python\n" + "\n".join(FLAGS["eager"]) in written


def test_a_model_whose_caller_waits_for_the_host_is_told_so() -> None:
    """On a GPU another core changes nothing then for who calls the model."""
    of = advised({"as_is": 1.0, "eager": 0.8})
    row = {**of.chosen, "timing": "device-cold", "host_s": 2 * of.chosen["latency_s"]}
    waiting = dataclasses.replace(of, rows={**of.rows, "eager": row})
    assert ["Here the host needs" in rendered(after(each)) for each in (of, waiting)] == [False, True]


CONTRACT = {"name", "status", "speedup", "speedup_low", "speedup_high", "kernels"}


def test_the_keys_are_a_contract() -> None:
    """The output is one object; a number that isn't known is null."""
    content = json.loads(as_json([advised({"as_is": 1.0, "eager": 0.8})]))
    assert {"model", "share", "bound", "alternatives", "recommendation"} <= {*content}
    assert content["model"] == "timm:vit_tiny_patch16_224"
    assert (content["recommendation"], content["paste"]) == ("eager", FLAGS["eager"])
    by_name = {each["name"]: each for each in content["alternatives"]}
    assert all({*each} >= CONTRACT for each in by_name.values())
    assert by_name["sdpa"]["speedup"] is None
    assert by_name["eager"]["speedup_low"] > 1
    keep = advised({"as_is": 1.0, "eager": 1.5})
    both = json.loads(as_json([keep, keep]))
    assert both["recommendation"] is None
    assert len(both["points"]) == 2
    look = json.loads(as_json([analyse.seen(POINT, looks(untraced="no graph", cores=[]))]))
    assert (look["bound"], look["baseline"]["latency_s"], look["alternatives"]) == (None, None, [])


WIDE = [seen([core("a")], share, share, number=number) for number, share in enumerate((0.5, 0.9, 0.99))]


@pytest.mark.parametrize(
    ("looked", "line"),
    [
        (looks(core_share=0.2), "Attention takes 20.0% [19.9, 20.1] of the time, so no attention setting can gain more "
            "than 1.26x"),
        (looks(core_share=0.001), "Attention takes 0.1% [0.1, 0.1] of the time, so no attention setting can speed up "
            "the model"),
        (looks(core_share=0.2, others=[CAP]), "Replaceable attention takes 20.0% [19.9, 20.1] of the time, so no "
            "attention setting can gain more than 1.26x"),
        (WIDE, "Attention takes 79.7% [0.0, 100.0] of the time, but the gain of a setting has no known bound"),
        (looks(has_whole=True), "Attention takes 20.0% [19.9, 20.1] of the time when traced; the model itself "
            "runs whole layers as one operator, so settings change more"),
        (looks(untraced="a branch at model.py:3"), "The share of attention is unknown: a branch at model.py:3"),
        (looks(cores=[], others=[CAP]), "No replaceable attention was found, but 1 softmax"),
    ],
)  # fmt: skip
def test_the_first_line_is_the_bound(looked: list[Seen], line: str) -> None:
    """No number is said that is not known."""

    def without_digits(text: str) -> str:
        return re.sub(r"\d+(\.\d+)?", "#", text)

    assert without_digits(words.bound(analyse.seen(POINT, looked))) == without_digits(line)


INLINE = {"operator": UNFUSED, "lines": "model.py:3-5"}


def test_what_to_write_in_a_model_is_said() -> None:
    """The line for each kind once, with the place; the recommendation points at it. A switch makes it needless.

    What stands in the way has a line, and so have values that are narrower than queries.
    """
    cores = [core(path, **INLINE) for path in ("blocks.0.attn", "blocks.1.attn")]
    advice = advised({"as_is": 1.0, "graph": 0.98, "sdpa": 0.7}, cores=cores, settings=BY_GRAPH)
    (place,) = words.rewriting(advice)
    assert "model.py:3-5" in place
    assert words.proposals(advice) == ["# blocks.0.attn", *words.proposal(cores[0])]
    assert words.recommendation(advice).endswith("Put the lines above into the source.")
    content = json.loads(as_json([advice]))
    assert (content["paste"], content["layers"][0]["proposal"]) == ([], words.proposal(cores[0]))
    switched = analyse.seen(POINT, looks(cores=cores))
    assert (words.rewriting(switched), words.proposals(switched)) == ([], [])
    capped = core("blocks.0.attn", **INLINE, obstacle="a soft cap at model.py:4")
    narrow = core("blocks.1.attn", shapes=((2, 3, 7, 192), (2, 3, 7, 192), (2, 3, 7, 128)))
    first, second = words.rewriting(analyse.seen(POINT, looks(cores=[capped, narrow])))
    assert ("a soft cap at model.py:4" in first, "padding values to 192" in second) == (True, True)


NAME = "F.scaled_dot_product_attention"


@pytest.mark.parametrize(
    ("facts", "line", "note"),
    [
        ({}, f"{NAME}(q, k, v, scale=0.5)", "in place of model.py:3-5: float32 q [2, 3, 7, 4], k"),
        ({"mask": "adds a bias"}, f"{NAME}(q, k, v, attn_mask=mask, scale=0.5)", "mask in this call: adds a bias"),
        ({"mask": "hides later keys", "is_causal": True}, f"{NAME}(q, k, v, is_causal=True, scale=0.5)", ""),
        ({"class_name": "nn.MultiheadAttention"}, "# model.py:3-5: nn.MultiheadAttention", "need_weights=False"),
        ({"obstacle": "its weights are used again at model.py:9"}, "", ""),
    ],
)  # fmt: skip
def test_a_line_says_what_is_known_of_its_core(facts: dict[str, Any], line: str, note: str) -> None:
    """Its scale, mask and shapes, and weights that nothing reads."""
    text = "\n".join(words.proposal(structs.replace(core("a", **INLINE), **facts)))
    assert text.startswith(line)
    assert note in text
    assert bool(text) == bool(line)


def with_rows(of: Advice, **changes: dict[str, Any]) -> Advice:
    """Return the answer of changed rows."""
    return dataclasses.replace(of, rows={name: {**row, **changes.get(name, {})} for name, row in of.rows.items()})


FASTER, SLOWER = advised({"as_is": 1.0, "eager": 0.5}), advised({"as_is": 1.0, "eager": 1.1})
TRACED = advised({"as_is": 1.0, "graph": 0.7, "sdpa": 0.7}, settings=BY_GRAPH)


@pytest.mark.parametrize(
    ("advice", "line"),
    [
        (FASTER, "Use eager: the fastest, #x [#, #] as fast as the unchanged model."),
        (advised({"as_is": 1.0, "eager": 0.5, "compiled": 0.5}),
            "Use eager: within #% of the fastest, #x [#, #] as fast as the unchanged model."),
        (SLOWER, "Keep the model unchanged: it is the fastest."),
        (with_rows(SLOWER, as_is={"standing": "named", "slowdown_high": 1.04}),
            "Keep the model unchanged: it is within #% of the fastest."),
        (with_rows(SLOWER, as_is={"standing": "named", "slowdown_high": 3.94}, eager={"standing": "open"}),
            "Not decided: as_is or eager (within #%). A longer --within may decide."),
        (with_rows(SLOWER, as_is={"standing": "named", "slowdown_high": None}, eager={"standing": "open"}),
            "Not decided: as_is or eager (no bound). A longer --within may decide."),
        (with_rows(FASTER, eager={"flagged_share": 0.9}),
            "Not decided: other processes disturbed most samples. Close them and run again."),
        (advised({"as_is": 1.0}), "Keep the model unchanged, because no other setting was measured."),
        (TRACED, "Keep the model unchanged: sdpa is #x [#, #] as fast in the traced model, but graph, the traced model "
            "unchanged, is #x [#, #]."),
    ],
)  # fmt: skip
def test_each_answer_has_its_recommendation(advice: Advice, line: str) -> None:
    """What isn't decided is said to be so."""
    assert re.fullmatch(re.escape(line).replace(r"\#", r"[\d.]+"), words.recommendation(advice))


def test_each_row_has_its_own_bound() -> None:
    """The largest belongs to a row of the table."""
    of = with_rows(FASTER, as_is={"slowdown_high": 3.27}, eager={"standing": "named", "slowdown_high": 1.04})
    cells = {cells[0].text: cells[2].text for cells in after(of)[0].cells}  # type: ignore[union-attr]
    assert cells == {"as_is": "227%", "eager": "4%"}


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("eager", "        module.fused_attn = False"),
        ("compiled_sdpa", "        module.fused_attn = True"),
        ("sdpa_math", "with sdpa_kernel(SDPBackend.MATH):"),
        ("compiled", "model.compile(dynamic=False)"),
        ("mykernel:attend", "F.scaled_dot_product_attention = bridge(attend)"),
        ("online[block_tokens=64]", "from attention_bench.impls.attend.online import attend"),
    ],
)
def test_lines_to_paste_set_the_librarys_switch(name: str, line: str) -> None:
    """They compile unchanged, and their imports from the suite exist."""
    lines = words.paste(FLAGS, name)
    assert line in lines
    compile("\n".join(lines), "pasted", "exec")
    own = [each for each in lines if each.startswith("from attention_bench.")]
    exec("\n".join(own), {})  # noqa: S102 - the imports of the lines above


def test_a_model_without_a_switch_gets_a_kernel_in_the_place_of_torchs_function() -> None:
    """There are no lines for its own behaviour: as it is, or with torch's function."""
    assert "from attention_bench.impls.attend.eager import attend" in words.paste({}, "compiled_eager")
    assert words.paste({}, "sdpa") == words.paste(FLAGS, "as_is") == []
