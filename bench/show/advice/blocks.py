"""An answer as blocks: what was seen before anything was compared, and what came of comparing."""

from collections.abc import Callable
from typing import Any

from bench.analyse.advice import LITTLE, Advice
from bench.plan.case import AS_IS
from bench.show.advice import words
from bench.show.blocks import GAP, HEAD, QUIET, WARNING, Block, Code, Column, Lines, Table
from bench.show.terminal.styles import GOOD
from bench.store import units


def before(advice: Advice) -> list[Block]:
    """Return what was found before anything is compared; its first line is the bound."""
    return [
        Lines([words.bound(advice)], HEAD),
        Lines([words.about(advice)]),
        Lines(words.layers(advice), QUIET, is_list=True, indent=2),
        Lines(advice.objections, WARNING, is_list=True, indent=2),
        Lines(words.rewriting(advice), is_list=True, indent=2),
    ]


def stopped(advice: Advice) -> list[Block]:
    """Return why nothing is compared."""
    why = f"That is below {units.ratio(LITTLE)}, so nothing was compared"
    how = f"--anyway compares the settings all the same. A call takes {units.seconds(advice.call_s)}."
    return [Lines([f"{why}; {how}"])]


def after(advice: Advice) -> list[Block]:
    """Return the table of settings, the recommendation and its lines to paste; nothing if nothing was compared."""
    if not advice.alternatives:
        return []
    as_is = {
        "name": AS_IS,
        "measured": "baseline",
        **{name: advice.as_is.get(name) for name in ("latency_s", "peak_bytes")},
    }
    others = [
        {**vars(each), "measured": words.gain(each.speedup), "gain": words.gain(each.predicted)}
        for each in advice.alternatives
        if each.status == "ok"
    ]
    return [
        Table(_columns(advice), [as_is, *others]),
        Lines([*words.not_measured(advice), *words.differences(advice)], WARNING, is_list=True),
        Lines([*words.agreements(advice), *words.unpredicted(advice)], QUIET, is_list=True),
        GAP,
        Lines([words.recommendation(advice)], HEAD),
        Code(words.paste(advice.library, advice.recommendation) if advice.recommendation else []),
        Lines(words.legend(advice.alternatives), QUIET, is_list=True),
    ]


def _columns(advice: Advice) -> list[Column]:
    def style(row: dict[str, object]) -> str:
        return GOOD if row["name"] == advice.recommendation else ""

    return [
        Column("setting", lambda row: row["name"], style=style, is_code=True),
        Column("measured", lambda row: row["measured"]),
        Column("predicted", lambda row: row.get("gain", "")),
        _number("latency", "latency_s", units.seconds),
        _number("peak memory", "peak_bytes", units.size),
        _number("first compile", "compile_s", units.duration),
        _number("output error", "error", lambda error: "" if units.is_missing(error) else f"{error:.1g}"),
    ]


def _number(heading: str, name: str, text: Callable[[Any], str]) -> Column:
    return Column(heading, lambda row: text(row.get(name)), lambda row: row.get(name))
