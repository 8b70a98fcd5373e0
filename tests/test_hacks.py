"""Implementations that save or hide work end with a reason in a real run, and don't affect others."""

import re
from pathlib import Path

import pytest

from bench.analyse.analysed_run import AnalysedRun
from bench.engine import run as engine
from bench.plan.sweep import Effort, Sweep
from bench.sampling.rounds import Length
from tests import hacks
from tests.make.points import point

pytestmark = pytest.mark.slow

EFFORT = Effort(processes=1, timeout_s=60)

SHORTEST = Length(0.0)
"""The fewest rounds, because so many implementations take long anyway."""

NOT_FINITE = point(layer="tests.odd_layers:Odd[core=hidden]", num_tokens=40)
KEEPS, SPINS = "tests.hacks:keeps_a_buffer", "tests.hacks:spins_between_calls"


def test_no_hack_is_rewarded(tmp_path: Path) -> None:
    """Each ends with its status and the reason; only honest work has a time, including eager and sdpa beside them.

    What one keeps from call to call stands in its row, and nothing of what is there for every implementation. Beside a
    layer whose own output is not finite no row has a time.
    """
    expected = {at: {"eager": "ok: $", "sdpa": "ok: $", **ends} for at, ends in hacks.every_hack().items()}
    expected[NOT_FINITE] = dict.fromkeys(["eager", "sdpa"], "unsupported: .* 12 NaN of 480 values")
    names = dict.fromkeys(name for ends in expected.values() for name in ends)
    with engine.Run(Sweep("hacks", tuple(expected), tuple(names), effort=EFFORT), tmp_path) as run:
        for at, asked in expected.items():
            if SPINS in asked:
                run.replicate(at, ["sdpa", SPINS], Length(1.0))  # beside all others it would spin for long
            while missing := [name for name in run.missing(at) if name in asked]:  # a crash is tried again
                run.replicate(at, missing, SHORTEST)
    results = AnalysedRun(tmp_path).whole.fillna({"detail": ""})
    for at, patterns in expected.items():
        of_point = (results["mode"] == at.mode) & (results["num_tokens"] == at.num_tokens)
        table = results[of_point].set_index("implementation")
        ends = {name: f"{table['status'][name]}: {table['detail'][name]}" for name in patterns}
        assert {name: end for name, end in ends.items() if not re.match(patterns[name], end)} == {}
        if KEEPS in patterns:
            assert table["held_bytes"][[KEEPS, "eager"]].tolist() == [hacks.KEPT_BYTES, 0]
        assert table["latency_s"].isna().tolist() == (table["status"] != "ok").tolist()
