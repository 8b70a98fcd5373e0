"""One case of a run, called without any instrument."""

import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from bench.engine.variables import KEEPS
from bench.measure import workload
from bench.plan.case import Case
from bench.profiling import calls
from bench.profiling.capture import WARM_CALLS
from bench.store import table
from impls import Implementation
from tests.make.points import point
from tests.make.results import results

SEEN: list[Tensor] = []


def seeing(layer: nn.Module) -> Implementation:
    """Return a layer that keeps its inputs."""

    def implementation(x: Tensor) -> Tensor:
        SEEN.append(x)
        y: Tensor = layer(x)
        return y

    return implementation


def test_a_case_has_the_inputs_of_a_run_and_warms_up() -> None:
    """The line says how often it was called after that."""
    at = point()
    line = calls.line(Case(at, f"{__name__}:seeing"), 5)
    assert len(SEEN) == WARM_CALLS + 5
    assert all(torch.equal(x, workload.make(at).inputs()[0]) for x in SEEN)
    assert line.startswith(f"{at.name}-{__name__}:seeing: 5 calls in ")


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
