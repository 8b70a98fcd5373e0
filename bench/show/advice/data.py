"""An answer as JSON: one object, whose keys are a contract."""

import json
import math
from collections.abc import Sequence
from typing import Any

from bench.analyse.advice import Advice, Alternative
from bench.show.advice import words
from bench.stats.estimates import Interval


def as_json(answers: Sequence[Advice]) -> str:
    """Return the answer as JSON; with several points it is the first one's, with all of them as `points`."""
    objects = [as_object(advice) for advice in answers]
    whole = {**objects[0], "points": objects} if len(objects) > 1 else objects[0]
    return json.dumps(whole, indent=2, allow_nan=False) + "\n"


def as_object(advice: Advice) -> dict[str, Any]:
    """Return an answer as a JSON object; a number that is not known is null."""
    return {
        "model": advice.point.layer,
        "point": {name: value for name, value in vars(advice.point).items() if value is not None},
        **_interval("share", advice.share),
        **_interval("core_share", advice.core_share),
        **_interval("layer_share", advice.layer_share),
        **_interval("bound", advice.bound),
        **_interval("rewritten", advice.rewritten),
        "call_s": _number(advice.call_s),
        "layers": [
            {"path": kind.path, "count": kind.count, "share": _number(kind.share), **kind.core} for kind in advice.kinds
        ],
        "objections": [*advice.objections],
        "baseline": {
            "name": "as_is",
            "latency_s": _number(advice.as_is.get("latency_s")),
            "peak_bytes": _number(advice.as_is.get("peak_bytes")),
        },
        "alternatives": [_alternative(each) for each in advice.alternatives],
        "recommendation": advice.recommendation,
        "paste": words.paste(advice.library, advice.recommendation) if advice.recommendation else [],
        "processes": advice.processes,
        "slowdown_high": _number(advice.as_is.get("slowdown_high")),
    }


def _alternative(of: Alternative) -> dict[str, Any]:
    return {
        "name": of.name,
        "status": of.status,
        "detail": of.detail,
        **_interval("speedup", of.speedup),
        **_interval("predicted", of.predicted),
        "slowdown_high": _number(of.slowdown_high),
        "kernels": [*of.kernels],
        "latency_s": _number(of.latency_s),
        "peak_bytes": _number(of.peak_bytes),
        "error": _number(of.error),
        "compile_s": _number(of.compile_s),
    }


def _interval(name: str, of: Interval) -> dict[str, float | None]:
    return {name: _number(of.value), f"{name}_low": _number(of.low), f"{name}_high": _number(of.high)}


def _number(value: Any) -> float | None:
    try:
        return float(value) if math.isfinite(value) else None
    except TypeError:  # None, or pandas' NA
        return None
