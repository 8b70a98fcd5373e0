"""`python -m bench compare`: its options, its forms, and how it ends."""

import dataclasses
import itertools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.cli import main
from bench.plan.case import CONTROL, Case
from bench.store import table
from bench.store.environment import Environment
from tests.make.points import point
from tests.make.records import ORIGIN, measured, record, samples
from tests.make.runs import saved

TIMES = {"eager": 1.0, "sdpa": 0.5, "mha": 0.8, "online": 0.9}
PROCESSES = 6
FORMS = ("terminal", "markdown", "csv", "json")

IDENTITY = {"cpu": "A CPU", "cores": 2, "gpus": {}}
STATE = {"load_1min": 0.4, "preflight": {"others_cores": 0.0, "spread": 0.03}}

Printed = Callable[..., str]
Refused = Callable[..., str]
Capture = pytest.CaptureFixture[str]


def folder(path: Path, times: Mapping[str, float] = TIMES, failing: str = "", cores: int = 2, **state: Any) -> Path:
    """Write a run in which each implementation takes its time at two points, give or take a tenth of a percent."""
    where = Environment({**IDENTITY, "cores": cores}, {**STATE, **state}, {})
    origin = dataclasses.replace(ORIGIN, env_id=where.env_id)
    crash: dict[str, Any] = {"status": "crashed", "origin": origin, "samples": samples(), "detail": "signal 11\n[core]"}
    records = [
        record(case=case, process=n, **crash) if name == failing else measured(case, n, value, origin=origin)
        for n, tokens in itertools.product(range(PROCESSES), (5, 7))
        for name, value in times.items()
        for case in [Case(point(num_tokens=tokens), name)]
    ]
    return saved(path, records, where)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run; tests that write into it take a copy."""
    return folder(tmp_path_factory.mktemp("runs") / "base")


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run in which sdpa takes a tenth longer."""
    return folder(tmp_path_factory.mktemp("runs") / "slower", {**TIMES, "sdpa": 0.55})


# how it ends


@pytest.fixture(scope="module")
def worse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run in which sdpa takes a tenth longer and mha crashes."""
    return folder(tmp_path_factory.mktemp("runs") / "worse", {**TIMES, "sdpa": 0.55}, failing="mha")


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ([], 1),
        (["--fail-on", "slower"], 1),
        (["--fail-on", "newly-failing"], 1),
        (["--fail-on", "fixed,missing"], 0),
        (["--fail-on", "baseline"], 1),
        (["--fail-on", ""], 0),
        (["--fail-on", "slower", "--margin", "0.2"], 0),
        (["--margin", "0.2"], 1),
    ],
)
def test_it_fails_on_the_verdicts_that_are_named(base: Path, worse: Path, options: list[str], status: int) -> None:
    """Without names on a row that became slower by more than the margin, and on one that fails: no user wants it."""
    assert main(["compare", str(base), str(worse), *options]) == status


def test_what_cannot_be_compared_ends_with_3(base: Path, tmp_path: Path, refused: Refused) -> None:
    """The line says which columns differ, which conditions differ, or how many cases are shared.

    What isn't there can't be forced either.
    """
    other = tmp_path / "other.csv"
    table.load(base).assign(threads=4).to_csv(other, index=False)
    for options in ([], ["--force"]):
        line = refused("compare", base / table.RESULTS, other, *options, status=3)
        assert line.endswith("share no case: threads is 1 in BASE and 4 in NEW")
    line = refused("compare", base, folder(tmp_path / "other", cores=8), status=3)
    assert "cores: 2 against 8; --force" in line
    alone = folder(tmp_path / "alone", {"eager": 1.0})
    assert "share no case with a speed-up" in refused("compare", base, alone, status=3)


# its forms


@pytest.mark.parametrize("form", FORMS)
def test_a_file_holds_what_is_printed(base: Path, slower: Path, tmp_path: Path, form: str, printed: Printed) -> None:
    """With --to what comes first is printed alone, and the exit status is the same."""
    command = ["compare", base, slower, "--format", form]
    output = printed(*command, status=1)
    (line,) = printed(*command, "--to", tmp_path / "out", status=1).splitlines()
    assert line.startswith(f"{tmp_path / 'out'}: 2 rows are slower: sdpa N=")
    written = (tmp_path / "out").read_text(encoding="utf-8")
    assert [line.rstrip() for line in written.splitlines()] == [line.rstrip() for line in output.splitlines()]


def test_json_is_json_and_notes_of_csv_stand_aside(base: Path, tmp_path: Path, capsys: Capture) -> None:
    """Standard output holds the data alone."""
    busy = folder(tmp_path / "busy", load_1min=3.5)
    assert main(["compare", str(base), str(busy), "--format", "json"]) == 0
    comparison = json.loads(capsys.readouterr().out)
    assert any(note.startswith("warning: ") for note in comparison["notes"])
    assert main(["compare", str(base), str(busy), "--format", "csv"]) == 0
    output = capsys.readouterr()
    assert "warning: " in output.err
    assert len(output.out.splitlines()) == 1 + len(comparison["rows"])


def test_only_what_changed_is_listed_unless_all_rows_are_asked_for(base: Path, slower: Path, printed: Printed) -> None:
    """Runs that are alike have no warning."""
    short, long = (printed("compare", base, slower, *words, status=1) for words in ([], ["--all"]))
    assert ["\nequivalent " in text for text in (short, long)] == [False, True]
    assert short.splitlines()[-1] == long.splitlines()[-1] == "2 slower, 4 equivalent, 2 baseline"
    alike = printed("compare", base, base, "--force")
    assert "warning: " not in alike


def test_a_control_that_is_right_is_no_row_of_a_comparison(base: Path, tmp_path: Path, printed: Printed) -> None:
    """With an older run, which has none, and with another that has one; no other implementation is missed either."""
    new = folder(tmp_path / "new", {**TIMES, CONTROL: 1.0})
    for sides in ([base, new], [new, base], [new, new]):
        text = printed("compare", *sides, "--fail-on", "missing,new,open,slower")
        assert "identical code" not in text
        assert CONTROL not in text
