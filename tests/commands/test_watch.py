"""`watch`, which measures a kernel again whenever it is saved."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.cli import main
from bench.commands import watch
from bench.plan import names
from impls.catalogue import name_of
from tests.make.records import samples

Capture = pytest.CaptureFixture[str]

KERNEL = """
from impls import with_attend
from impls.attend.sdpa import attend as sdpa


def attend(q, k, v, scale):
    o = sdpa(q, k, v, scale)
    return o


adapt = with_attend(attend)
"""


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of a kernel, in the folder in which the user stands."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "watched_kernel.py"
    file.write_text(KERNEL, encoding="utf-8")
    return file


def test_each_saved_version_has_a_name_of_its_own(
    kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that wasn't saved since, or is being replaced, isn't a new version; a package's module keeps its name."""
    folder = tmp_path / "versions"
    folder.mkdir()
    changes = iter(["", None, "another"])

    def change(_: float) -> None:
        if (text := next(changes)) is None:
            kernel.unlink()
        elif text:
            kernel.write_text(text, encoding="utf-8")

    monkeypatch.setattr(watch, "sleep", change)
    found = watch.versions(name_of("watched_kernel:adapt"), kernel, folder)
    assert [next(found), next(found)] == ["watched_kernel_save_1:adapt", "watched_kernel_save_2:adapt"]
    assert [path.read_text(encoding="utf-8") for path in sorted(folder.iterdir())] == [KERNEL, "another"]
    assert next(watch.versions(name_of("kernels.fast:adapt"), kernel, folder)) == "kernels.fast:adapt"


def scripted(times_s: dict[str, float]) -> Any:
    """Return tries of three replicates whose times are made up; a name without a time is incorrect."""

    def member(name: str, number: int) -> Any:
        call_s = times_s.get(name, 1.0) * (1 + 0.001 * number)
        return SimpleNamespace(
            is_ok=name in times_s,
            status="incorrect",
            detail=f"output of {name} is off, at tokens 64 to 196: /tmp/x/{name.partition(':')[0]}.py, line 3",
            samples=samples(*(call_s * factor for factor in (1.0, 1.001, 0.999, 1.002, 0.998))),
            metrics={"error": 1e-7, "kernels": ["bmm"]},
            doubt="returns the same memory for every output",
        )

    return SimpleNamespace(
        replicates=lambda names: ({name: member(name, number) for name in ("eager", *names)} for number in range(3))
    )


def test_a_version_is_judged_beside_the_baseline_and_the_last_one(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First whether it is right, then both ratios; a wrong one says where, by the name of the user's module."""
    monkeypatch.setattr(names, "mistake_of", lambda *_: "")
    tries = scripted({"eager": 2.0, "k_save_1:adapt": 1.0, "k_save_2:adapt": 1.1})
    assert watch._tried(tries, "k_save_2:adapt", "k_save_1:adapt", "eager")
    right, judged = capsys.readouterr().out.splitlines()
    assert "correct, error 1e-07: bmm; returns the same memory" in right
    assert "faster than eager: 1.8" in judged
    assert "slower than the last version: 0.9" in judged
    assert not watch._tried(tries, "k_save_3:adapt", "k_save_1:adapt", "eager")
    assert "incorrect: output of k:adapt is off, at tokens 64 to 196: k.py, line 3\n" in capsys.readouterr().out


@pytest.mark.slow
def test_a_kernel_is_measured_as_often_as_it_is_saved(
    kernel: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In real processes: right, then wrong from a token on, then Ctrl-C with the command of a duel."""
    changes = iter([KERNEL.replace("return o", "o[:, :, 3:] = 0\n    return o"), None])

    def saved(_: float) -> None:
        if (text := next(changes)) is None:
            raise KeyboardInterrupt
        kernel.write_text(text, encoding="utf-8")
        os.utime(kernel, ns=(1, 1))

    monkeypatch.setattr(watch, "sleep", saved)
    monkeypatch.setattr("bench.engine.trial.ROUNDS_S", 0.05)
    monkeypatch.setattr("bench.engine.trial.REPLICATES", 2)
    shape = ["--batch", "2", "--num-tokens", "7", "--channels", "12", "--num-heads", "2"]
    assert main(["watch", "watched_kernel:adapt", *shape]) == 0
    said = capsys.readouterr().out
    assert "correct, error" in said
    assert "tokens 3 to 6" in said
    assert "bench duel eager watched_kernel:adapt" in said
