"""Implementations that save or hide work are found out in a real run, and harm nobody."""

import re
from pathlib import Path

import pytest

from bench.engine import run as engine
from bench.plan.sweep import Effort, Sweep
from bench.store.table import load
from tests import hacks
from tests.points import point

pytestmark = pytest.mark.slow

EFFORT = Effort(processes=1, budget_s=2.0, timeout_s=60)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("inference", hacks.EXPECTED | hacks.IN_INFERENCE),
        ("train", {name: hacks.EXPECTED[name] for name in hacks.IN_TRAINING}),
    ],
)
def test_no_hack_is_rewarded(mode: str, expected: dict[str, str], tmp_path: Path) -> None:
    """Each ends with its status and the reason; only honest work has a time, that of eager and sdpa beside them too.

    What one keeps from call to call stands in its row, and nothing of what is there for every implementation.
    """
    at = point(batch=8, num_tokens=128, channels=128, num_heads=4, mode=mode)
    names = [f"tests.hacks:{name}" for name in expected]
    list(engine.run(Sweep("hacks", (at,), ("eager", "sdpa", *names), effort=EFFORT), tmp_path))
    table = load(tmp_path).set_index("implementation").fillna({"detail": ""})
    said = {name: f"{table['status'][name]}: {table['detail'][name]}" for name in table.index}
    assert (said.pop("eager"), said.pop("sdpa")) == ("ok: ", "ok: ")
    wrong = {name: said[f"tests.hacks:{name}"] for name in expected if not _is_said(expected[name], said, name)}
    assert wrong == {}
    held_bytes = table["held_bytes"][["tests.hacks:keeps_a_buffer", "eager"]]
    assert held_bytes.tolist() == [hacks.KEPT_BYTES, 0]
    assert table["latency_s"].isna().tolist() == (table["status"] != "ok").tolist()


def _is_said(pattern: str, said: dict[str, str], name: str) -> bool:
    return re.match(pattern, said[f"tests.hacks:{name}"]) is not None
