"""Implementations that save or hide work end with a reason in a real run, and harm nobody."""

import re
from pathlib import Path

import pytest

from bench.engine import run as engine
from bench.plan.sweep import Effort, Sweep
from bench.sampling.rounds import Length
from bench.store.table import load
from tests import hacks
from tests.make.points import point

pytestmark = pytest.mark.slow

EFFORT = Effort(processes=1, timeout_s=60)

SHORTEST = Length(0.0)
"""The fewest rounds: so many take their time already."""


def test_no_hack_is_rewarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each ends with its status and the reason; only honest work has a time, that of eager and sdpa beside them too.

    What one keeps from call to call stands in its row, and nothing of what is there for every implementation.
    The memory of a call is measured only of those that attack the process that measures it.
    """
    monkeypatch.setattr(engine, "may_have_own_memory", lambda name: name.rpartition(":")[2] in hacks.IN_ANY_PROCESS)
    names = {"inference": [*hacks.EXPECTED], "train": [*hacks.IN_TRAINING]}
    points = {mode: point(batch=8, num_tokens=128, channels=128, num_heads=4, mode=mode) for mode in names}
    asked = {mode: ["eager", "sdpa", *(f"tests.hacks:{name}" for name in names[mode])] for mode in names}
    sweep = Sweep("hacks", tuple(points.values()), tuple(asked["inference"]), effort=EFFORT)
    with engine.Run(sweep, tmp_path) as run:
        for mode, at in points.items():
            while missing := [name for name in run.missing(at) if name in asked[mode]]:  # a crash is tried again
                run.replicate({at: missing}, SHORTEST)
    results = load(tmp_path).fillna({"detail": ""})
    for mode, names_of_mode in asked.items():
        table = results[results["mode"] == mode].set_index("implementation")
        ends = {name: f"{table['status'][name]}: {table['detail'][name]}" for name in names_of_mode}
        expected = {f"tests.hacks:{name}": hacks.EXPECTED[name] for name in names[mode]}
        expected |= {"eager": "ok: $", "sdpa": "ok: $"}
        assert {name: end for name, end in ends.items() if not re.match(expected[name], end)} == {}
        held_bytes = table["held_bytes"][["tests.hacks:keeps_a_buffer", "eager"]]
        assert held_bytes.tolist() == [hacks.KEPT_BYTES, 0]
        assert table["latency_s"].isna().tolist() == (table["status"] != "ok").tolist()
