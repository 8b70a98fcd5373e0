"""The facts about this machine, and its stable identity."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from bench.engine import variables
from bench.engine.variables import THREAD_VARIABLES
from bench.machine import facts
from bench.plan.case import RETAINED
from bench.store.environment import Environment, differences

ROOT = Path(__file__).parents[2]
TORCH_FACTS: dict[str, Any] = {"torch": "2.13.0", "gpus": {"cuda:0": "H200"}}


def observed() -> Environment:
    """Return the environment of this machine."""
    return facts.observe(TORCH_FACTS, {"sweep": "quick"}, {})


def in_another_process(code: str, **environment: str) -> str:
    """Return the output of a fresh interpreter."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_the_identity_is_the_same_in_another_process() -> None:
    """Another process on the machine finds the same env_id with any hash seed, arguments and sweep.

    A new version of torch is another identity, and its GPUs give the devices their names.
    """
    code = f"from bench.machine import facts; print(facts.observe({TORCH_FACTS!r}, {{'sweep': 'vit'}}, {{}}).env_id)"
    here, newer = observed(), facts.observe({**TORCH_FACTS, "torch": "2.14.0"}, {}, {})
    assert in_another_process(code, PYTHONHASHSEED="7") == here.env_id
    assert here.context["sweep"] == "quick"
    assert differences(here, newer) == ["torch: '2.13.0' against '2.14.0'"]
    assert here.device_name("cuda") == "H200"
    assert here.device_name("cpu") == here.identity["cpu"] != ""


def test_instructions_for_half_precision_change_no_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are in the context, so older runs stay comparable."""
    monkeypatch.setattr(facts, "cpu_features", lambda: frozenset({"avx2", "amx_bf16"}))
    here = observed()
    assert here.context["half_precision"] == "no avx512_bf16, amx_bf16, no avx512_fp16, no amx_fp16"
    assert "half_precision" not in here.identity


def test_variables_that_change_what_runs_are_part_of_the_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """So are the wait policy of OpenMP's threads and preloaded libraries.

    Without any, the identity lacks these facts, as in older runs; values hold no folders.
    """
    waits = {"OMP_WAIT_POLICY": "7", "GOMP_SPINCOUNT": "7", "KMP_BLOCKTIME": "7"}
    for name in (*facts.variables(), *waits, "LD_PRELOAD"):
        monkeypatch.delenv(name, raising=False)
    before = observed()
    given = {"TORCHINDUCTOR_FREEZING": "1", "ONEDNN_MAX_CPU_ISA": "AVX2", "XLA_FLAGS": "--dump=/home/me/x --fast"}
    for name, value in (given | waits | {"LD_PRELOAD": "/opt/lib/libtcmalloc.so"}).items():
        monkeypatch.setenv(name, value)
    after = observed()
    assert not {"variables", "preloaded"} & {*before.identity}
    assert after.identity["variables"] == {**given, "XLA_FLAGS": "--dump=x --fast"}
    assert (after.identity["wait_policy"], after.identity["preloaded"]) == (waits, ["libtcmalloc.so"])
    names = [line.split(":")[0] for line in differences(before, after)]
    assert sorted(names) == sorted(["preloaded", "wait_policy", *(f"variable {name}" for name in given)])


def test_what_is_no_setting_is_in_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets, places, output, the user's own variables, and variables that workers set or remove."""
    before = facts.variables()
    ours = {*variables.environment(RETAINED, 1, Path("cache"))} - {*variables.environment("system", 1, Path("cache"))}
    ours = (ours | {*THREAD_VARIABLES, "TORCHINDUCTOR_CACHE_DIR", "MALLOC_ARENA_MAX"}) - {"GLIBC_TUNABLES"}
    others = "TORCH_HUB_TOKEN XLA_API_KEY TORCH_HOME TORCH_LOGS MKL_VERBOSE CUDA_PATH MINE"
    for name in (*ours, *others.split()):
        monkeypatch.setenv(name, "7")
    assert facts.variables() == before


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system can't pin a process to a core")
def test_cores_are_those_that_the_process_may_use() -> None:
    """A process that is pinned to one core has one core, and one thread by default."""
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); from bench.machine import facts; "
        "print(facts.visible_cores(), facts.physical_cores(), facts.default_threads())"
    )
    assert in_another_process(code) == "1 1 1"
    assert 1 <= facts.physical_cores() <= facts.visible_cores() <= (os.cpu_count() or 1)


def test_a_containers_limit_bounds_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The least that a control group or one above it has left counts; `max` is no limit."""
    own = tmp_path / "job" / "step"
    own.mkdir(parents=True)
    for folder, limit in ((own, "max"), (own.parent, "5000")):
        (folder / "memory.max").write_text(f"{limit}\n")
        (folder / "memory.current").write_text("2000\n")
    monkeypatch.setattr(facts, "_control_groups", lambda: iter([own, own.parent, tmp_path]))
    assert facts.available_bytes() == 3000
    (own.parent / "memory.stat").write_text("anon 1200\ninactive_file 600\nactive_file 200\n")
    assert facts.available_bytes() == 3600  # memory that wasn't read recently can be reclaimed


def test_seconds_of_cores_are_of_those_that_the_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may be bound to other cores; values that a system doesn't report count as 0."""
    times = [SimpleNamespace(user=1.0, system=0.5), SimpleNamespace(user=10.0, nice=2.0)]
    monkeypatch.setattr(psutil, "cpu_times", lambda percpu: times if percpu else None)
    monkeypatch.setattr(os, "sched_getaffinity", {0: {1}, 1: {0}}.__getitem__, raising=False)
    assert facts.busy_s() == 12.0


def test_what_torch_was_built_for_stands_in_its_version_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read without importing torch; values that the file lacks are empty."""
    (tmp_path / "version.py").write_text("cuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n")
    found = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", {"torch": found}.get)
    assert (facts.torch_cuda(), facts.torch_hip()) == ("13.0", "")
