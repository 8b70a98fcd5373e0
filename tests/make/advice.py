"""What processes saw at made-up models, and runs of their settings."""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.analyse import advice as analyse
from bench.analyse.advice import Advice
from bench.analyse.rows import plain
from bench.plan.core import Core
from bench.store.looks import Seen, Times, Tried
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
    "sdpa": Tried("same", "", "fused_attn"),
    "eager": Tried("ok", "", "fused_attn"),
    "sdpa_flash": Tried("unsupported", "no kernel"),
}


def core(layer: str, **changes: Any) -> Core:
    """Return a core as a look reports it."""
    facts = {"operator": SDPA, "shapes": ((2, 3, 7, 4),) * 3, "scale": 0.5, **changes}
    return Core(layer, "Attention", dtype="float32", **facts)


def seen(
    cores: Sequence[Core], core_share: float, layer_share: float, *, scatter: float = 0.01, number: int = 0, **more: Any
) -> Seen:
    """Return the look of a process with three calls of a second, in which all layers take the same time."""
    rng = random.Random(number)
    factors = [rng.lognormvariate(0, scatter) for _ in range(3)]
    others = len(more.get("others", ()))
    calls = tuple(
        Times(
            0.9,
            1.0,
            cores=tuple(core_share * factor / len(cores) for _ in cores),
            others=(OTHER_SHARE * factor,) * others,
            layers=layer_share * factor,
        )
        for factor in factors
    )
    return Seen(
        **{"cores": tuple(cores), "calls": calls, "kernels": (SDPA,), "settings": SETTINGS, "paste": FLAGS, **more}
    )


ALIKE = (core("blocks.0.attn"), core("blocks.1.attn"))


def looks(
    core_share: float = 0.2, layer_share: float = 0.4, cores: Sequence[Core] = ALIKE, **changes: Any
) -> list[Seen]:
    """Return the looks of three processes at a model, by default with two equal layers."""
    return [seen(cores, core_share, layer_share, number=number, **changes) for number in range(3)]


def advised(times_s: Mapping[str, float], **seen_too: Any) -> Advice:
    """Return the answer for settings with these times; other arguments change the looks at the model."""
    asked = dict.fromkeys([*SETTINGS, *(name for name in times_s if name != "as_is")])
    return compared(timed([POINT], times_s, 8, scatter=0.004, seed="1"), asked, **seen_too)


def compared(records: Sequence[Record], names: Iterable[str], **seen_too: Any) -> Advice:
    """Return the answer for records of settings; other arguments change the looks at the model."""
    return analyse.compared(analyse.seen(POINT, looks(**seen_too)), plain(summarise(records, "as_is")), names)
