"""What processes saw at made-up models, and runs of their settings."""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.analyse import advice as analyse
from bench.analyse.advice import Advice
from bench.analyse.rows import plain
from bench.store.record import Record
from tests.make.points import point
from tests.make.records import timed
from tests.make.results import summarise

POINT = point(layer="timm:vit_tiny_patch16_224", batch=2)

SDPA = "_scaled_dot_product_flash_attention_for_cpu"

OTHER_SHARE = 0.1
"""The share of the time of each softmax that belongs to no core."""

LOOP = ["for module in model.modules():", '    if hasattr(module, "fused_attn"):']

FLAGS = {
    "sdpa": [*LOOP, "        module.fused_attn = True"],
    "eager": [*LOOP, "        module.fused_attn = False"],
}
"""The lines that set the switch of timm."""

SETTINGS = {
    "sdpa": {"status": "same", "detail": "", "by": "fused_attn"},
    "eager": {"status": "ok", "detail": "", "by": "fused_attn"},
    "sdpa_flash": {"status": "unsupported", "detail": "no kernel", "by": ""},
}


def core(layer: str, **changes: Any) -> dict[str, Any]:
    """Return a core as a look reports it."""
    return {
        "layer": layer,
        "class_name": "Attention",
        "layer_input": [2, 7, 12],
        "operator": SDPA,
        "by_sdpa": True,
        "shapes": [[2, 3, 7, 4]] * 3,
        "strides": [[252, 4, 36, 1]] * 3,
        "dtype": "float32",
        "masks": [],
        "mask": "",
        "causal": False,
        "dropout": 0.0,
        "obstacle": "",
        "weights_are_used": False,
        **changes,
    }


def seen(
    cores: Sequence[Mapping[str, Any]],
    core_share: float,
    layer_share: float,
    *,
    scatter: float = 0.01,
    number: int = 0,
    **changes: Any,
) -> dict[str, Any]:
    """Return what a process saw in three calls of a second, the layers alike in their time."""
    rng = random.Random(number)
    factors = [rng.lognormvariate(0, scatter) for _ in range(3)]
    calls = [
        {
            "plain_s": 0.9,
            "total_s": 1.0,
            "cores": [core_share * factor / len(cores) for _ in cores],
            "others": [OTHER_SHARE * factor] * len(changes.get("others", ())),
            "layers": layer_share * factor,
        }
        for factor in factors
    ]
    return {
        "cores": [*cores],
        "calls": calls,
        "others": [],
        "untraced": "",
        "kernels": [SDPA],
        "has_whole": False,
        "settings": SETTINGS,
        "paste": FLAGS,
        **changes,
    }


ALIKE = (core("blocks.0.attn"), core("blocks.1.attn"))


def looks(
    core_share: float = 0.2, layer_share: float = 0.4, cores: Sequence[Mapping[str, Any]] = ALIKE, **changes: Any
) -> list[dict[str, Any]]:
    """Return what three processes saw at a model, by default of two layers that are alike."""
    return [seen(cores, core_share, layer_share, number=number, **changes) for number in range(3)]


def advised(times_s: Mapping[str, float], **seen_too: Any) -> Advice:
    """Return the answer for settings that take these times, at a model of which looks see something besides."""
    asked = dict.fromkeys([*SETTINGS, *(name for name in times_s if name != "as_is")])
    return compared(timed([POINT], times_s, 8, scatter=0.004, seed="1"), asked, **seen_too)


def compared(records: Sequence[Record], names: Iterable[str], **seen_too: Any) -> Advice:
    """Return the answer for records of settings, at a model of which looks see something besides."""
    return analyse.compared(analyse.seen(POINT, looks(**seen_too)), plain(summarise(records, "as_is")), names)
