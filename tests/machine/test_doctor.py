"""Whether a machine is ready, and what to do if it isn't."""

import subprocess
from dataclasses import replace
from importlib import metadata
from subprocess import CompletedProcess

import pytest

from bench.machine import doctor, facts, gpus, quiet
from bench.machine.doctor import BAD, MIND, READY, Finding, findings
from bench.machine.quiet import Preflight
from tests.machine.test_gpus import A_GPU


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the machine for a quiet one of four cores, without variables that matter."""
    monkeypatch.setattr(quiet, "watch", lambda: Preflight(0.0, 0, 0.0))
    monkeypatch.setattr(facts, "physical_cores", lambda: 4)
    for name in (*facts.WAIT_POLICY_VARIABLES, "LD_PRELOAD", "CXX"):
        monkeypatch.delenv(name, raising=False)
    _has_torchvision(monkeypatch, "")


def _has_torchvision(monkeypatch: pytest.MonkeyPatch, error: str | None) -> None:
    """Have torchvision installed, whose import ends with an error; it isn't there if that is empty."""

    def version(name: str) -> str:
        if error == "":
            raise metadata.PackageNotFoundError(name)
        return "0.28.0"

    done = CompletedProcess([], int(bool(error)), stderr=f"Traceback\n{error}\n" if error else "")
    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)


def finding(name: str) -> Finding:
    """Return the finding of a name."""
    return next(each for each in findings() if each.name == name)


def test_everything_that_matters_is_looked_at() -> None:
    """Each has a state and words, and whatever isn't ready has advice."""
    every = findings()
    names = {"versions", "cores", "memory pages", "compiler", "GPU", "noise now"}
    assert names <= {each.name for each in every}
    assert all(each.words for each in every)
    assert [each for each in every if each.state != READY and not each.advice] == []


def test_a_missing_or_old_torch_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be measured then."""
    for version, state in (("", BAD), ("2.4.0", BAD), ("2.13.0+cpu", READY)):
        monkeypatch.setattr(facts, "torch_version", lambda version=version: version)
        assert finding("versions").state == state


def test_a_torchvision_of_another_torch_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stops every model of timm and torchvision, so its error is named; one that fits is ready."""
    assert not any(each.name == "torchvision" for each in findings())
    _has_torchvision(monkeypatch, "RuntimeError: operator torchvision::nms does not exist")
    told = finding("torchvision")
    assert (told.state, "0.28.0" in told.words, "torchvision::nms" in told.words) == (MIND, True, True)
    _has_torchvision(monkeypatch, None)
    assert finding("torchvision").state == READY


def test_what_to_mind_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine, a single core, a missing compiler, and variables that change what runs."""
    monkeypatch.setattr(quiet, "watch", lambda: Preflight(3.0, 0, 0.0))
    monkeypatch.setattr(doctor.shutil, "which", lambda _: None)  # type: ignore[attr-defined]
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    monkeypatch.setenv("TORCHINDUCTOR_FREEZING", "1")
    assert finding("noise now").state == MIND
    assert finding("compiler").state == MIND
    assert "compiled implementations" in finding("compiler").advice
    assert all(name in finding("variables").words for name in ("OMP_WAIT_POLICY", "TORCHINDUCTOR_FREEZING"))
    monkeypatch.setattr(quiet, "watch", lambda: Preflight(0.0, 0, 0.0))
    monkeypatch.setattr(facts, "physical_cores", lambda: 1)
    assert finding("noise now").state == MIND


def test_a_gpu_that_torch_cannot_use_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the way to a torch that can."""
    monkeypatch.setattr(gpus, "seen", lambda: [A_GPU])
    monkeypatch.setattr(facts, "torch_cuda", lambda: "")
    assert (finding("GPU").state, finding("GPU").words) == (MIND, f"{A_GPU.words}, but this torch has no CUDA")
    monkeypatch.setattr(facts, "torch_cuda", lambda: "13.0")
    assert (finding("GPU").state, finding("GPU").words) == (READY, f"{A_GPU.words}; torch is built for CUDA 13.0")


def test_each_gpu_is_told_with_who_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several have their own lines; one that another process uses, or that only one may use, is to mind."""
    monkeypatch.setattr(facts, "torch_cuda", lambda: "13.0")
    used, alone = replace(A_GPU, processes=(1,)), replace(A_GPU, device="cuda:1", mode="EXCLUSIVE_PROCESS")
    monkeypatch.setattr(gpus, "seen", lambda: [used, alone])
    assert (finding("cuda:0").state, finding("cuda:1").state) == (MIND, MIND)
    assert "another process (pid 1)" in finding("cuda:0").words
    assert "--id=1 --compute-mode=DEFAULT" in finding("cuda:1").advice
