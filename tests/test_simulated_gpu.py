"""A run on a GPU that is made up goes through all of the suite: engine, judge, journal, answer."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.analyse.analysed_run import load
from bench.engine import pool
from bench.engine.run import run
from bench.engine.worker import Worker
from bench.machine import facts, nvml
from bench.plan.device import COLD, GRAPH, HOST, HOT
from bench.plan.sweep import Request, load_sweep
from bench.sampling import requests
from tests.machine.test_nvml import A_GPU
from tests.make.simulated_gpu import NAME

pytestmark = pytest.mark.slow


def test_each_way_to_time_a_call_has_a_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is ok, with the host's seconds beside the GPU's; the processes of a point start side by side.

    What refuses the layer has a row, too.
    """
    asked_for: list[type] = []
    post = Worker.post

    def noted(worker: Worker, request: requests.Request[Any], **options: Any) -> None:
        asked_for.append(type(request))
        post(worker, request, **options)

    monkeypatch.setattr(Worker, "post", noted)
    monkeypatch.setattr(pool, "MODULE", "tests.simulated_server")
    monkeypatch.setattr(facts, "torch_cuda", lambda: "12.8")
    monkeypatch.setattr(nvml, "gpus", lambda: [replace(A_GPU, name=NAME)])
    timings = [COLD, HOT, GRAPH, HOST]
    shape = {"batch": 1, "num_tokens": 16, "channels": 32, "num_heads": 2, "dtype": "float32", "mode": "train"}
    overrides = {**{name: [value] for name, value in shape.items()}, "device": ["cuda"], "timing": timings}
    effort = {"race": False, "processes": 1, "budget_s": 0.2}
    names = ("eager", "tests.foreign:unsupported")
    asked = Request("quick", overrides=overrides, product=True, effort=effort, implementations=names, control=False)
    list(run(load_sweep(asked), tmp_path / "run"))
    rows = load(tmp_path / "run")
    ends = {(timing, "eager", "ok") for timing in timings} | {(timing, names[1], "unsupported") for timing in timings}
    told = ["timing", "implementation", "status"]
    assert {*rows[told].itertuples(index=False, name=None)} == ends, rows[[*told, "detail"]].to_string()
    rows = rows[rows["status"] == "ok"]
    assert (rows["host_s"] > 0).all()
    arrive, expect, prepare = steps = requests.Arrive, requests.Expect, requests.Prepare
    assert [kind for kind in asked_for if kind in steps] == [arrive, arrive, expect, prepare, prepare] * len(timings)
    assert [*rows["event_s"].notna()] == [*(rows["timing"] != HOST)]
    assert {*rows["device_name"]} == {f"{NAME} 8 GiB"}
