"""Implementations that save or hide work end with a reason in a real run, and harm nobody."""

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


@pytest.mark.parametrize(("mode", "names"), [("inference", hacks.EXPECTED), ("train", hacks.IN_TRAINING)])
def test_no_hack_is_rewarded(mode: str, names: list[str], tmp_path: Path) -> None:
    """Each ends with its status and the reason; only honest work has a time, that of eager and sdpa beside them too.

    What one keeps from call to call stands in its row, and nothing of what is there for every implementation.
    """
    at = point(batch=8, num_tokens=128, channels=128, num_heads=4, mode=mode)
    asked = ("eager", "sdpa", *(f"tests.hacks:{name}" for name in names))
    list(engine.run(Sweep("hacks", (at,), asked, effort=EFFORT), tmp_path))
    table = load(tmp_path).set_index("implementation").fillna({"detail": ""})
    ends = {name.removeprefix("tests.hacks:"): f"{table['status'][name]}: {table['detail'][name]}" for name in asked}
    assert (ends.pop("eager"), ends.pop("sdpa")) == ("ok: ", "ok: ")
    assert {name: end for name, end in ends.items() if not re.match(hacks.EXPECTED[name], end)} == {}
    held_bytes = table["held_bytes"][["tests.hacks:keeps_a_buffer", "eager"]]
    assert held_bytes.tolist() == [hacks.KEPT_BYTES, 0]
    assert table["latency_s"].isna().tolist() == (table["status"] != "ok").tolist()
