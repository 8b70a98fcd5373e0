"""The answer of `advise`: its sentences, in the terminal, as Markdown and as JSON."""

import dataclasses
import json
import re
from typing import Any

import pytest

from bench.analyse import advice as analyse
from bench.analyse.advice import Advice
from bench.show import advice as words
from bench.show.advice import after, as_json, before, stopped
from bench.show.blocks import Block
from bench.show.markdown import markdown
from bench.show.terminal.console import rendered
from bench.stats.estimates import UNKNOWN, Interval
from impls.catalogue import GRAPH
from tests.make.advice import FLAGS, POINT, advised, core, looks, seen


def screen(blocks: list[Block]) -> str:
    """Return what a terminal shows."""
    return rendered(blocks)


def test_a_look_has_no_table() -> None:
    """Its first line, the bound, is bold in Markdown, and the kinds of layers follow. A small bound has a way on."""
    seen = analyse.seen(POINT, looks(core_share=0.05))
    text = markdown([*before(seen), *stopped(seen)])
    assert text.startswith("**attention takes 5")
    assert "blocks.0.attn" in text
    assert "|" not in text
    assert "--anyway" in text


def test_padding_that_could_be_packed_is_named_with_its_share() -> None:
    """Of two cores with 14 tokens each, 8 are padding; to pack is no setting, but its sweep is named."""
    mask = {"kind": "padding", "dtype": "bool", "shape": [2, 1, 1, 7], "lengths": [7, 3]}
    padded = core("blocks.0.attn", shapes=[[2, 3, 7, 4]] * 3, masks=[mask], mask="bool [2, 1, 1, 7]")
    seen = analyse.seen(POINT, looks(cores=[padded, padded, core("blocks.1.attn")]))
    text = " ".join(screen(before(seen)).split())
    assert "29% of the tokens in padded cores are padding; to pack the others is a change of the model." in text
    assert (
        "--look --sweep-file OUT.toml --as core writes them with their lengths, and python -m bench run --sweep" in text
    )
    assert "padded" not in screen(before(analyse.seen(POINT, looks())))


def test_the_answer_fits_a_screen() -> None:
    """The table with the model as it is, the recommendation, and its lines, which Markdown has as code."""
    advice = advised({"as_is": 1.0, "eager": 0.8, "compiled": 1.2})
    written = markdown(after(advice))
    assert len(screen(after(advice)).splitlines()) < 24
    assert "| `as_is` | baseline" in written
    assert "| `eager` | 1.2" in written
    assert "**use eager: 1.2" in written
    assert "```python\n" + "\n".join(FLAGS["eager"]) in written


def test_a_model_whose_caller_waits_for_the_host_is_told_so() -> None:
    """On a GPU another core changes nothing then for who calls the model."""
    of = advised({"as_is": 1.0, "eager": 0.8})
    row = {**of.chosen, "timing": "device-cold", "host_s": 2 * of.chosen["latency_s"]}
    assert "Here the host needs" in screen(after(dataclasses.replace(of, chosen=row)))
    assert "the host needs" not in screen(after(of))


CONTRACT = {"name", "status", "speedup", "speedup_low", "speedup_high", "kernels"}


def test_the_keys_are_a_contract() -> None:
    """The output is one object; a number that isn't known is null."""
    content = json.loads(as_json([advised({"as_is": 1.0, "eager": 0.8})]))
    assert {"model", "share", "bound", "alternatives", "recommendation"} <= {*content}
    assert content["model"] == "timm:vit_tiny_patch16_224"
    assert content["recommendation"] == "eager"
    by_name = {each["name"]: each for each in content["alternatives"]}
    assert all({*each} >= CONTRACT for each in by_name.values())
    assert by_name["sdpa"]["speedup"] is None
    assert by_name["eager"]["speedup_low"] > 1
    keep = advised({"as_is": 1.0, "eager": 1.5})
    both = json.loads(as_json([keep, keep]))
    assert both["recommendation"] is None
    assert len(both["points"]) == 2


def test_the_first_lines_are_the_bound_and_a_line_for_each_kind_of_layer() -> None:
    """The share with its interval, and what it leaves to gain; where layers are, their shapes, and their core."""
    advice = analyse.seen(POINT, looks(core_share=0.2))
    line = words.bound(advice)
    assert line.startswith("attention takes 20")
    assert re.search(r"no setting of attention alone can gain more than 1\.2\d+x \[1\.2\d*, 1\.2\d*\]$", line)
    kind, whole = words.layers(advice)
    q = "q [2, 3, 7, 4] strides [252, 4, 36, 1], float32, no mask"
    assert kind.startswith(f"2 layers Attention (blocks.0.attn): {q}")
    assert "layers of these cores" in whole


def test_no_number_is_said_that_is_not_known() -> None:
    """A bound that can't be known, an interval that says nothing, a graph that is not there, and no core."""
    wide = [seen([core("a")], share, share, number=number) for number, share in enumerate((0.5, 0.9, 0.99))]
    assert words.bound(analyse.seen(POINT, wide)).endswith("what a setting can gain at most is not known yet")
    whole = analyse.seen(POINT, looks(has_whole=True))
    assert "no setting" not in words.bound(whole)
    assert "whole layers" in words.bound(whole)
    untraced = analyse.seen(POINT, looks(untraced="a branch at model.py:3"))
    assert "not known yet: a branch at model.py:3" in words.bound(untraced)
    assert words.gain(Interval(1.0, 0.001, 1000.0)) == "not known yet"
    assert words.gain(UNKNOWN) == ""
    unsure = dataclasses.replace(SLOWER, as_is={**SLOWER.as_is, "slowdown_high": 393.0})
    assert "not known yet" in words.recommendation(unsure)
    assert "%" not in words.recommendation(unsure)


def test_softmaxes_of_no_core_are_named_with_their_share() -> None:
    """Also without any core: what is there is never denied."""
    advice = analyse.seen(POINT, looks(others=[{"layer": "gate", "lines": "model.py:3", "reason": "no product"}]))
    (line,) = map(words.other, advice.others)
    assert re.fullmatch(r"a softmax at model.py:3 \(gate\) takes [\d.]+ % \[.*\] of the time: no product", line)
    assert words.bound(advice).startswith("attention that can be replaced takes 20")
    alone = dataclasses.replace(advice, kinds=())
    assert "softmaxes in 1 layer" in words.bound(alone)
    assert line.partition(":")[0] in screen(before(alone)).replace("\n", " ")


def test_what_to_write_in_a_model_is_said() -> None:
    """The lines of its source, those in their place, each once; the recommendation points at them."""
    facts = {"operator": "unfused", "by_sdpa": False, "lines": "model.py:3-5"}
    cores = [
        core(path, **facts, proposal=["o = F(q)", f"# q of {path}"]) for path in ("blocks.0.attn", "blocks.1.attn")
    ]
    settings = {"sdpa": {"status": "ok", "detail": "", "by": GRAPH}}
    advice = advised({"as_is": 1.0, "graph": 0.98, "sdpa": 0.7}, cores=cores, settings=settings)
    (where,) = words.rewriting(advice)
    assert "model.py:3-5" in where
    first = advice.kinds[0].path
    assert words.proposals(advice) == [f"# {first}", "o = F(q)", f"# q of {first}"]
    line = words.recommendation(advice)
    assert line.startswith("use sdpa: 1.4")
    assert "the model traced and unchanged, is 1.02" in line
    assert line.endswith("write the lines above in place of its own")
    assert json.loads(as_json([advice]))["paste"] == []
    no_gain = advised({"as_is": 1.0, "graph": 0.7, "sdpa": 0.7}, cores=cores, settings=settings)
    assert words.recommendation(no_gain).startswith("keep the model as it is: sdpa is 1.4")
    plain = analyse.seen(POINT, looks())
    assert (words.rewriting(plain), words.proposals(plain)) == ([], [])


def test_the_setting_of_memory_is_said_in_words() -> None:
    """As a duel says it: a program has the C library's defaults."""
    advice = analyse.seen(POINT, looks())
    assert "C library's defaults" in screen(before(advice)).replace("\n", " ")
    usual = dataclasses.replace(advice, point=dataclasses.replace(POINT, allocator="system"))
    assert "C library" not in screen(before(usual)).replace("\n", " ")


def test_what_a_fused_core_can_not_express_is_said() -> None:
    """In one line; nothing is proposed."""
    capped = core("blocks.0.attn", operator="unfused", by_sdpa=False, obstacle="a soft cap (tanh) at model.py:4")
    advice = analyse.seen(POINT, looks(cores=[capped], settings={}))
    (line,) = words.rewriting(advice)
    assert "a soft cap (tanh) at model.py:4" in line
    assert words.proposals(advice) == []
    assert words.recommendation(advice).startswith("keep the model as it is")


def kind_of(**facts: Any) -> str:
    """Return the line of layers with a core of which these facts are known."""
    (kind,) = analyse.seen(POINT, looks(cores=[core("a", **facts)])).kinds
    return words.kind(kind)


def test_keys_of_another_shape_than_queries_are_printed() -> None:
    """Those of another text, or of fewer heads."""
    fewer = kind_of(shapes=[[2, 3, 7, 4], [2, 1, 9, 4], [2, 1, 9, 4]])
    assert "q [2, 3, 7, 4] strides [252, 4, 36, 1], k [2, 1, 9, 4], float32" in fewer
    assert " k [" not in kind_of()


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"shapes": [[6, 7, 4]] * 3, "strides": [[28, 4, 1]] * 3}, "because q has 3 dimensions"),
        ({"shapes": [[2, 3, 7, 4]] * 2 + [[2, 3, 7, 8]]}, "because q and v have other widths"),
        ({"strides": [[84, 28, 1, 7]] * 3}, "innermost in memory"),
        ({"dropout": 0.1}, "dropout"),
    ],
)
def test_an_unfused_call_of_sdpa_has_its_reason(facts: dict[str, object], reason: str) -> None:
    """What fused kernels don't take."""
    line = kind_of(operator="unfused", **facts)
    assert "F.scaled_dot_product_attention: unfused, because " in line
    assert reason in line


SLOWER = advised({"as_is": 1.0, "eager": 1.1})
LIKELY = [dataclasses.replace(each, speedup=Interval(1.13, 1.05, 1.22)) for each in SLOWER.alternatives[1:]]
WIDE = dataclasses.replace(SLOWER, share=Interval(0.2, 0.2, 0.2), as_is={**SLOWER.as_is, "slowdown_high": 1.9})
COMPILED = dataclasses.replace(WIDE.alternatives[1], name="compiled")


@pytest.mark.parametrize(
    ("advice", "line"),
    [
        (advised({"as_is": 1.0, "eager": 0.5, "compiled": 0.5}),
            "use eager: #x [#, #] as fast as the model as it is; no setting is more than #% faster"),
        (SLOWER, "keep the model as it is: no setting is shown to be faster; it is the fastest"),
        (dataclasses.replace(SLOWER, alternatives=tuple(LIKELY)), "keep the model as it is so far: eager is likely "
            "faster, 1.13x [1.05, 1.22], but not shown to be; a longer --within decides"),
        (WIDE, "keep the model as it is: no setting is shown to be faster; none is more than #% faster by the "
            "share of attention, or 90% by its times"),
        (dataclasses.replace(WIDE, alternatives=(COMPILED,)),
            "keep the model as it is: no setting is shown to be faster; none is more than 90% faster"),
        (dataclasses.replace(WIDE, as_is={}), "keep the model as it is: no setting is shown to be faster; how much "
            "faster one may be is not known yet; a longer --within tells"),
    ],
)  # fmt: skip
def test_each_answer_has_its_recommendation(advice: Advice, line: str) -> None:
    """A gain is never larger than the share of attention allows, unless a setting changes more than attention."""
    assert re.fullmatch(re.escape(line).replace(r"\#", r"[\d.]+"), words.recommendation(advice))


def test_what_was_not_measured_is_said() -> None:
    """Each with its reason."""
    same, unsupported = words.not_measured(advised({"as_is": 1.0, "eager": 1.1}))
    assert same == "sdpa: runs the same kernels as the model as it is, so it was not measured"
    assert unsupported == "sdpa_flash: unsupported: no kernel"


def test_of_several_points_the_fastest_for_each_item_is_said() -> None:
    """First in a table, with its ratio to the next; what isn't shown is said to be so, and one point says nothing."""
    first = analyse.PerItem(POINT, "eager", 0.001, Interval(1.0, 1.0, 1.0))
    other = dataclasses.replace(POINT, batch=4)
    for low, is_shown in ((1.1, True), (0.9, False)):
        second = analyse.PerItem(other, "as_is", 0.0012, Interval(1.2, low, 1.4))
        text = screen(words.together([], [first, second]))
        headline = next(line for line in text.splitlines() if line)
        assert headline.startswith("fastest for each item: B=2, with eager: 1.2")
        assert ("not shown" in headline) is not is_shown
        assert "B=4" in headline
    assert screen(words.together([], [first])).strip() == ""


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
    """They compile as they stand, and what they import from the suite is there."""
    lines = words.paste(FLAGS, name)
    assert line in lines
    compile("\n".join(lines), "pasted", "exec")
    own = [each for each in lines if each.startswith("from attention_bench.")]
    exec("\n".join(own), {})  # noqa: S102 - the imports of the lines above


def test_a_model_without_a_switch_gets_a_kernel_in_the_place_of_torchs_function() -> None:
    """Nothing is pasted for what it does anyway: as it is, or with torch's function."""
    assert "from attention_bench.impls.attend.eager import attend" in words.paste({}, "compiled_eager")
    assert words.paste({}, "sdpa") == words.paste(FLAGS, "as_is") == []
