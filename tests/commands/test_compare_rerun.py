"""`compare --rerun`: rows in dispute measured again with both sides in one run, by workers that make their times up."""

import dataclasses
import itertools
import json
import random
import sys
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pytest

from bench.analyse.summary import summarise
from bench.cli import main
from bench.engine import pool, preflight
from bench.engine.preflight import Preflight
from bench.plan.case import Case
from bench.store import environment, journal, machine, table
from bench.store.record import Record, Slots
from tests.engine.interpreters import two
from tests.examples import ORIGIN
from tests.points import point

CLEAR, NOISY = 1e-3, 0.1
SCATTER = {"eager": CLEAR, "sdpa": NOISY, "mha": NOISY, "online": CLEAR}
"""How far the processes of each implementation lie apart: those of two tell nothing."""

PROCESSES = 6
EFFORT = {"processes": 3, "target": 0.02, "budget_s": 0.3, "timeout_s": 60, "check_memory": False}


@pytest.fixture(autouse=True)
def _scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have workers make their times up, and take the machine for quiet."""
    monkeypatch.setattr(pool, "MODULE", "tests.engine.scripted_server")
    monkeypatch.setattr(preflight, "watch", lambda: Preflight(0.0, 0, 0.0))


def run(path: Path, torch: str, commit: str = "abc", times: Mapping[str, float] | None = None) -> Path:
    """Write a run of this machine with a torch of this version; the runs differ by chance and by `times` alone."""
    here = machine.observe({"torch": torch, "gpus": {}}, {"effort": EFFORT}, {})
    origin = dataclasses.replace(ORIGIN, env_id=here.env_id, commit=commit)
    records = [
        measured(Case(point(), name), process, path.name, scatter, origin, (times or {}).get(name, 1.0))
        for process, (name, scatter) in itertools.product(range(PROCESSES), SCATTER.items())
    ]
    path.mkdir()
    environment.save(here, path)
    journal.append(path, records)
    table.save(summarise(records, "eager"), path)
    return path


def measured(case: Case, process: int, side: str, scatter: float, origin: object, time_s: float) -> Record:
    """Return a record of two rounds that took this time, give or take the scatter."""
    value_s = time_s * random.Random(f"{case.name} {process} {side}").lognormvariate(0, scatter)
    slots = Slots((0, 1), ((value_s,), (value_s,)), (0, 0), (0, 0))
    return Record(case, process, "ok", origin, slots=slots, metrics={"calls_per_timing": 1, "settled": True})  # type: ignore[arg-type]


@dataclasses.dataclass(frozen=True)
class Request:
    """The words of a comparison of two runs, whose sides take 1 ms and 1.1 ms when they are measured again."""

    words: list[str]
    base: Path
    new: Path
    pythons: tuple[str, str]
    folder: Path

    def rerun(self, *more: str) -> int:
        """Compare with a rerun, and return the status."""
        a, b = self.pythons
        sides = ["--rerun", "--python", a, "--python", b]
        return main([*self.words, *sides, "--looks", "2,4", "--run", str(self.folder), *more])


@pytest.fixture
def asked(tmp_path: Path) -> Request:
    """Return the request to compare two versions of torch."""
    base, new = run(tmp_path / "base", "2.0"), run(tmp_path / "new", "2.1")
    return Request(["compare", str(base), str(new), "--force"], base, new, two(tmp_path, "1.1e-3"), tmp_path / "rerun")


def test_rows_in_dispute_get_a_verdict_and_the_others_keep_theirs(
    asked: Request, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What two runs left open, one run decides; the status follows what was found."""
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    assert main([*asked.words, "--format", "json", "--to", str(before)]) == 0
    assert asked.rerun("--format", "json", "--to", str(after)) == 1
    was, became = (rows(path) for path in (before, after))
    assert was["verdict"].to_dict() == {
        "eager": "baseline", "sdpa": "inconclusive", "mha": "inconclusive", "online": "equivalent",
    }  # fmt: skip
    assert became["verdict"].to_dict() == {
        "eager": "baseline", "sdpa": "slower", "mha": "slower", "online": "equivalent",
    }  # fmt: skip
    assert became["rerun"].to_dict() == {"eager": False, "sdpa": True, "mha": True, "online": False}
    assert became.loc["sdpa", "change"] == pytest.approx(1 / 1.1, abs=0.01)
    assert became.loc["sdpa", "new_latency_s"] == pytest.approx(1.1e-3, rel=0.01)
    assert became["change"].to_dict()["online"] == was["change"].to_dict()["online"]
    assert "2 rows in dispute measured again side by side: 2 slower" in json.loads(after.read_text())["notes"][-1]
    assert asked.rerun() == 1
    said = capsys.readouterr().out
    assert "never judged, except in rows that a rerun measured alternately" in " ".join(said.split())
    assert said.count("B slower") == 4
    assert "a wrong one has a chance of 0.5% in the whole table" in said
    assert [len(table.load(asked.folder / name / side)) for name in ("sdpa", "mha") for side in "ab"] == [1] * 4


def rows(path: Path) -> pd.DataFrame:
    """Return the rows of a comparison by implementation."""
    return pd.DataFrame(json.loads(path.read_text())["rows"]).set_index("implementation")


@pytest.mark.parametrize(("machine_factor", "remeasured"), [(1.0, False), (1.5, True)])
def test_a_change_on_a_machine_of_another_speed_is_in_dispute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine_factor: float, remeasured: bool
) -> None:
    """Where all rows take half as long again, a slower one may be the machine's doing: side by side it is as before."""
    monkeypatch.setattr(sys.modules[__name__], "SCATTER", dict.fromkeys(SCATTER, CLEAR))
    times = {name: machine_factor * (1.1 if name == "online" else 1.0) for name in SCATTER}
    words = ["compare", str(run(tmp_path / "base", "2.0")), str(run(tmp_path / "new", "2.1", times=times)), "--force"]
    assert main(words) == 1
    to = tmp_path / "after.json"
    request = Request(words, tmp_path, tmp_path, two(tmp_path), tmp_path / "rerun")
    assert request.rerun("--format", "json", "--to", str(to)) == (0 if remeasured else 1)
    after, found = rows(to), json.loads(to.read_text())
    assert after.loc["online", "verdict"] == ("equivalent" if remeasured else "slower")
    assert any("times as long in NEW" in note for note in found["notes"]) == remeasured


def test_a_row_that_cannot_be_measured_again_stays_in_dispute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The output says so, and why."""
    failing = "test:raises_in_b"
    monkeypatch.setattr(sys.modules[__name__], "SCATTER", {"eager": CLEAR, failing: NOISY})
    words = ["compare", str(run(tmp_path / "base", "2.0")), str(run(tmp_path / "new", "2.1")), "--force"]
    to = tmp_path / "after.json"
    request = Request(words, tmp_path, tmp_path, two(tmp_path), tmp_path / "rerun")
    assert request.rerun("--format", "json", "--to", str(to)) == 0
    after = rows(to)
    assert (after["verdict"].to_dict()[failing], after["rerun"].to_dict()[failing]) == ("inconclusive", False)
    assert "side by side: 1 not measured" in json.loads(to.read_text())["notes"][-1]
    assert "B incorrect: wrong" in capsys.readouterr().out


def test_where_nothing_is_in_dispute_nothing_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line says so."""
    monkeypatch.setattr(sys.modules[__name__], "SCATTER", dict.fromkeys(SCATTER, CLEAR))
    words = ["compare", str(run(tmp_path / "base", "2.0")), str(run(tmp_path / "new", "2.0"))]
    request = Request(words, tmp_path, tmp_path, two(tmp_path), tmp_path / "rerun")
    assert request.rerun() == 0
    assert "no row is in dispute, so nothing was measured again" in " ".join(capsys.readouterr().out.split())
    assert not request.folder.exists()


def test_an_interpreter_that_is_not_what_its_run_was_measured_with_is_not_comparable(
    asked: Request, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Side A has torch 2.0, BASE was measured with 1.9."""
    other = run(tmp_path / "other", "1.9")
    same = run(tmp_path / "same", "1.9", commit="abc")
    request = dataclasses.replace(asked, words=["compare", str(other), str(same)])
    assert request.rerun() == 3
    said = capsys.readouterr().err
    assert "python-a is not what BASE was measured with: torch: '1.9' against '2.0'; --force" in said


def test_code_that_changed_cannot_be_told_apart_by_one_interpreter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two commits under one interpreter would be the second commit against itself."""
    base, new = run(tmp_path / "base", "2.0", "abc"), run(tmp_path / "new", "2.0", "def")
    words = ["compare", str(base), str(new)]
    request = Request(words, base, new, (sys.executable, sys.executable), tmp_path / "rerun")
    assert request.rerun() == 2
    assert "differ in their commit (abc against def)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rerun"], "--rerun takes --python twice, for BASE and for NEW"),
        (["--rerun", "--python", sys.executable], "got 1"),
        (["--python", sys.executable], "--python goes with --rerun"),
        (["--rerun", "--python", "/no/such", "--python", "/no/such"], "/no/such must be a Python interpreter"),
        (["--rerun", "--looks", "one"], "--looks one must be whole numbers"),
    ],
)
def test_a_rerun_that_cannot_be_is_a_wrong_request(
    asked: Request, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line says what was expected, before anything is measured."""
    assert main([*asked.words, *words]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert message in said[0]
