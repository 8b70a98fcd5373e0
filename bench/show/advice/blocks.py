"""The answer of `advise` as blocks, before and after settings are compared, and as JSON."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.analyse.advice import LITTLE, Advice
from bench.plan.case import AS_IS
from bench.show.advice import words
from bench.show.blocks import GAP, GOOD, HEAD, PLAIN, QUIET, WARNING, Block, Code, Column, Lines, Table
from bench.stats.estimates import Interval
from bench.store import units


def before(advice: Advice) -> list[Block]:
    """Return what was seen before anything is compared; its first line is the bound."""
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
    times = {name: advice.as_is.get(name) for name in ("latency_s", "peak_bytes")}
    others = [
        {**vars(each), "measured": words.gain(each.speedup), "gain": words.gain(each.predicted)}
        for each in advice.alternatives
        if each.status == "ok"
    ]
    return [
        Table(_columns(advice), [{"name": AS_IS, "measured": "baseline", **times}, *others]),
        Lines([*words.not_measured(advice), *words.differences(advice)], WARNING, is_list=True),
        Lines([*words.predictions(advice)], QUIET, is_list=True),
        GAP,
        Lines([words.recommendation(advice)], HEAD),
        Code(words.paste(advice.library, advice.recommendation) if advice.recommendation else []),
        Lines(words.legend(advice.alternatives), QUIET, is_list=True),
    ]


def _columns(advice: Advice) -> list[Column]:
    def tone(row: dict[str, Any]) -> str:
        return GOOD if row["name"] == advice.recommendation else PLAIN

    def number(heading: str, name: str, text: Callable[[Any], str]) -> Column:
        return Column(heading, lambda row: text(row.get(name)), lambda row: row.get(name))

    return [
        Column("setting", lambda row: row["name"], tone=tone, is_code=True),
        Column("measured", lambda row: row["measured"]),
        Column("predicted", lambda row: row.get("gain", "")),
        number("latency", "latency_s", units.seconds),
        number("peak memory", "peak_bytes", units.size),
        number("first compile", "compile_s", units.duration),
        number("output error", "error", lambda error: "" if units.is_missing(error) else f"{error:.1g}"),
    ]


def as_json(answers: Sequence[Advice]) -> str:
    """Return the answer as JSON; with several points it is the first one's, with all of them as `points`."""
    objects = [as_object(advice) for advice in answers]
    whole = {**objects[0], "points": objects} if len(objects) > 1 else objects[0]
    return json.dumps(whole, indent=2, allow_nan=False) + "\n"


def as_object(advice: Advice) -> dict[str, Any]:
    """Return an answer as a JSON object; a number that is not known is null."""
    shares = ("share", "core_share", "layer_share", "bound", "rewritten", "call_s")
    return {
        "model": advice.point.layer,
        "point": {name: value for name, value in vars(advice.point).items() if value is not None},
        **_plain({name: getattr(advice, name) for name in shares}),
        "layers": [
            {"path": kind.path, "count": kind.count, "share": _finite(kind.share), **kind.core} for kind in advice.kinds
        ],
        "objections": advice.objections,
        "baseline": {"name": AS_IS, **_plain({name: advice.as_is.get(name) for name in ("latency_s", "peak_bytes")})},
        "alternatives": [_plain(vars(each)) for each in advice.alternatives],
        "recommendation": advice.recommendation,
        "paste": words.paste(advice.library, advice.recommendation) if advice.recommendation else [],
        "processes": advice.processes,
        "slowdown_high": _finite(advice.as_is.get("slowdown_high")),
    }


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values for JSON, an interval as three numbers."""
    plain: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Interval):
            plain |= {
                name: _finite(value.value),
                f"{name}_low": _finite(value.low),
                f"{name}_high": _finite(value.high),
            }
        else:
            plain[name] = value if isinstance(value, str | tuple) else _finite(value)
    return plain


def _finite(value: Any) -> float | None:
    try:
        return float(value) if math.isfinite(value) else None
    except TypeError:  # None, or pandas' NA
        return None
