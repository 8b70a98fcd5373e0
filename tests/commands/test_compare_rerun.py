"""`compare --rerun`: rows in dispute measured again with both sides in one run, by workers that make their times up."""

import dataclasses
import itertools
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd
import pytest

from bench.cli import main
from bench.machine import facts
from bench.plan.case import Case
from bench.store import table
from tests.engine.interpreters import two
from tests.examples import ORIGIN, measured, saved
from tests.points import point

CLEAR, NOISY = 1e-3, 0.1
SCATTER = {"eager": CLEAR, "sdpa": NOISY, "mha": NOISY, "online": CLEAR}
"""How far the processes of each implementation lie apart: those of two tell nothing."""

PROCESSES = 6
pytestmark = pytest.mark.usefixtures("scripted_workers")

TWICE = ["--python", sys.executable] * 2

EFFORT = {"processes": 3, "budget_s": 0.3, "timeout_s": 60, "check_memory": False}


def run(path: Path, torch: str, commit: str = "abc", times: Mapping[str, float] | None = None) -> Path:
    """Write a run of this machine with a torch of this version; the runs differ by chance and by `times` alone."""
    here = facts.observe({"torch": torch, "gpus": {}}, {"effort": EFFORT}, {})
    origin = dataclasses.replace(ORIGIN, env_id=here.env_id, commit=commit)
    records = [
        measured(
            Case(point(), name), n, (times or {}).get(name, 1.0), scatter=SCATTER[name], seed=path.name, origin=origin
        )
        for n, name in itertools.product(range(PROCESSES), SCATTER)
    ]
    return saved(path, records, here)


@dataclasses.dataclass(frozen=True)
class Request:
    """The words of a comparison of two runs, and the interpreters that measure them again."""

    words: list[str]
    pythons: tuple[str, str]
    folder: Path

    def rerun(self, *more: str) -> int:
        """Compare with a rerun, and return the status."""
        a, b = self.pythons
        sides = ["--rerun", "--python", a, "--python", b]
        return main([*self.words, *sides, "--within", "10m", "--run", str(self.folder), *more])


def of_runs(folder: Path, base: Path, new: Path, *options: str, b_s: str = "1e-3") -> Request:
    """Return the request to compare two runs, whose sides take 1 ms and so long when they are measured again."""
    return Request(["compare", str(base), str(new), *options], two(folder, b_s), folder / "rerun")


@pytest.fixture
def asked(tmp_path: Path) -> Request:
    """Return the request to compare two versions of torch, of which the second takes a tenth longer."""
    return of_runs(tmp_path, run(tmp_path / "base", "2.0"), run(tmp_path / "new", "2.1"), "--force", b_s="1.1e-3")


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
    p, p_holm = (became.loc[["sdpa", "mha"], name].astype(float) for name in ("p", "p_holm"))
    assert p_holm.min() == pytest.approx(2 * p.min())
    assert became["change"].to_dict()["online"] == was["change"].to_dict()["online"]
    assert "2 rows in dispute measured again" in json.loads(after.read_text())["notes"][-1]
    assert asked.rerun() == 1
    output = capsys.readouterr().out
    assert output.count("B as fast as A") == 4
    assert "except in rows that a rerun measured" in " ".join(output.split())
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
    times, to = {name: machine_factor * (1.1 if name == "online" else 1.0) for name in SCATTER}, tmp_path / "after.json"
    request = of_runs(tmp_path, run(tmp_path / "base", "2.0"), run(tmp_path / "new", "2.1", times=times), "--force")
    assert main(request.words) == 1
    assert request.rerun("--format", "json", "--to", str(to)) == (0 if remeasured else 1)
    assert rows(to).loc["online", "verdict"] == ("equivalent" if remeasured else "slower")
    notes = json.loads(to.read_text())["notes"]
    assert any("times as long in NEW" in note for note in notes) == remeasured


def test_a_row_that_cannot_be_measured_again_stays_in_dispute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The output says so, and why."""
    failing, to = "test:raises_in_b", tmp_path / "after.json"
    monkeypatch.setattr(sys.modules[__name__], "SCATTER", {"eager": CLEAR, failing: NOISY})
    request = of_runs(tmp_path, run(tmp_path / "base", "2.0"), run(tmp_path / "new", "2.1"), "--force")
    assert request.rerun("--format", "json", "--to", str(to)) == 0
    after = rows(to)
    assert (after["verdict"].to_dict()[failing], after["rerun"].to_dict()[failing]) == ("inconclusive", False)
    assert "1 not measured" in json.loads(to.read_text())["notes"][-1]
    assert "B incorrect: wrong" in capsys.readouterr().out


def test_where_nothing_is_in_dispute_nothing_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line says so."""
    monkeypatch.setattr(sys.modules[__name__], "SCATTER", dict.fromkeys(SCATTER, CLEAR))
    request = of_runs(tmp_path, run(tmp_path / "base", "2.0"), run(tmp_path / "new", "2.0"))
    assert request.rerun() == 0
    assert "no row is in dispute" in " ".join(capsys.readouterr().out.split())
    assert not request.folder.exists()


def test_an_interpreter_that_is_not_what_its_run_was_measured_with_is_not_comparable(
    asked: Request, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Side A has torch 2.0, BASE was measured with 1.9."""
    sides = [str(run(tmp_path / name, "1.9")) for name in ("other", "same")]
    assert dataclasses.replace(asked, words=["compare", *sides]).rerun() == 3
    error = capsys.readouterr().err
    assert all(words in error for words in ("python-a is not what BASE", "torch: '1.9' against '2.0'; --force"))


def test_code_that_changed_cannot_be_told_apart_by_one_interpreter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two commits under one interpreter would be the second commit against itself."""
    request = of_runs(tmp_path, run(tmp_path / "base", "2.0", "abc"), run(tmp_path / "new", "2.0", "def"))
    assert dataclasses.replace(request, pythons=(sys.executable, sys.executable)).rerun() == 2
    assert "differ in their commit (abc against def)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rerun"], "--rerun takes --python twice, for BASE and for NEW"),
        (["--rerun", "--python", sys.executable], "got 1"),
        (["--python", sys.executable], "--python goes with --rerun"),
        (["--rerun", "--python", "/no/such", "--python", "/no/such"], "/no/such must be a Python interpreter"),
        (["--rerun", *TWICE, "--bound", "0"], "bound = 0.0 must be a share above 0 and below 1"),
        (["--rerun", *TWICE, "--within", "soon"], "--within soon must be a duration"),
    ],
)
def test_a_rerun_that_cannot_be_is_a_wrong_request(
    asked: Request, words: list[str], message: str, refused: Callable[..., str]
) -> None:
    """One line says what was expected, before anything is measured."""
    assert message in refused(*asked.words, *words)
