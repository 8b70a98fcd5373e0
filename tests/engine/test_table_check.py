"""A race that measures the follower of a table."""

import dataclasses
from pathlib import Path

import pytest

from bench.engine.table_check import TableCheck
from bench.machine import facts
from bench.plan.errors import NotComparable
from bench.plan.sweep import Effort, Sweep
from bench.store.environment import Environment
from tests.clock import Clock
from tests.make.points import point

pytestmark = pytest.mark.slow

FOLLOWER = "measured[table=table.json]"
EFFORT = Effort(processes=2, budget_s=0.1, race=True, bound=0.02, within_s=1.0, timeout_s=60)
SWEEP = Sweep("check", (point(), point(num_tokens=9)), ("sdpa", "eager", FOLLOWER), "sdpa", EFFORT, control=True)


def here() -> Environment:
    """Return what scripted workers say of this machine."""
    return facts.observe({"torch": "2.0", "gpus": {}}, {}, {})


def test_a_check_is_a_race_about_the_follower(tmp_path: Path, scripted_workers: Clock) -> None:
    """Each shape has an answer that names the follower, whichever is the fastest."""
    with TableCheck(SWEEP, tmp_path / "run", here()) as run:
        assert {*run.measured()} == {*SWEEP.points}
        answers = [run.answer(at, 0.02) for at in SWEEP.points]
    assert [each.named for each in answers] == [FOLLOWER] * 2
    assert run.follower == FOLLOWER


def test_a_table_of_another_machine_is_not_checked(tmp_path: Path, scripted_workers: Clock) -> None:
    """The line says what differs; nothing is measured. Other runtimes than torch don't count."""
    identity = {**here().identity, "cpu": "Another CPU"}
    other = dataclasses.replace(here(), identity=identity, runtimes={"openvino": "0.1"})
    with pytest.raises(NotComparable, match="this is another machine: cpu: 'Another CPU' against"):
        TableCheck(SWEEP, tmp_path / "run", other).__enter__()
    assert not (tmp_path / "run" / "journal.jsonl").exists()
