"""A run on a GPU that is made up goes through all of the suite: engine, judge, journal, answer."""

from pathlib import Path

import pytest

from bench.engine import pool
from bench.engine.run import run
from bench.machine import facts
from bench.plan.device import COLD, GRAPH, HOST, HOT
from bench.plan.sweep import Request, load_sweep
from bench.store.saved_run import load
from tests.make.simulated_gpu import NAME

pytestmark = pytest.mark.slow


def test_each_way_to_time_a_call_has_a_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All are ok, with the host's seconds beside the GPU's."""
    monkeypatch.setattr(pool, "MODULE", "tests.simulated_server")
    monkeypatch.setattr(facts, "torch_cuda", lambda: "12.8")
    monkeypatch.setattr(facts, "gpus", lambda: [NAME])
    timings = [COLD, HOT, GRAPH, HOST]
    shape = {"batch": 1, "num_tokens": 16, "channels": 32, "num_heads": 2, "dtype": "float32", "mode": "train"}
    overrides = {**{name: [value] for name, value in shape.items()}, "device": ["cuda"], "timing": timings}
    effort = {"race": False, "processes": 1, "budget_s": 0.2}
    asked = Request("quick", overrides=overrides, product=True, effort=effort, implementations=("eager", "sdpa"))
    list(run(load_sweep(asked), tmp_path / "run"))
    table = load(tmp_path / "run")
    rows = table[table["implementation"] != "control"]
    assert [*rows["status"]] == ["ok"] * 8, rows[["timing", "implementation", "status", "detail"]].to_string()
    assert {*rows["timing"]} == {*timings}
    assert (rows["host_s"] > 0).all()
    assert [*rows["event_s"].notna()] == [*(rows["timing"] != HOST)]
    assert {*rows["device_name"]} == {f"{NAME} 8 GiB"}
