"""One case of a run, called without any instrument."""

import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.engine.variables import KEEPS
from bench.plan.case import Case
from bench.store import table
from tests.make.points import point
from tests.make.results import results


@pytest.mark.filterwarnings("ignore:'bench.profiling.calls' found in sys.modules")
def test_the_command_becomes_a_process_as_that_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: Callable[..., str]
) -> None:
    """With the allocator of the point and its threads; it calls the case that was asked for."""

    def execve(program: str, words: list[str], variables: dict[str, str]) -> None:
        assert (program, words[:2]) == (sys.executable, [sys.executable, "-m"])
        assert {**KEEPS, "OMP_NUM_THREADS": "1"}.items() <= variables.items()
        monkeypatch.setattr(sys, "argv", words[2:])
        runpy.run_module(words[2], run_name="__main__")

    monkeypatch.setattr(os, "execve", execve)
    _, case = cases = [Case(point(mode="backward"), name) for name in ("eager", "sdpa")]
    table.save(results(cases), tmp_path)
    output = printed("call", tmp_path, "--case", "implementation=sdpa", "--calls", "3", status=None)
    assert output.startswith(f"{case.name}: 3 calls in ")
