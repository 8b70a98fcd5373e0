"""`python -m bench compare`: what it takes, its forms, and how it ends."""

import dataclasses
import itertools
import json
import re
import shutil
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
FORMS = ("text", "markdown", "csv", "json")

Printed = Callable[..., str]
Refused = Callable[..., str]


def folder(path: Path, times: Mapping[str, float] = TIMES, failing: str = "", cores: int = 2) -> Path:
    """Write a run in which each implementation takes its time at two points, give or take a tenth of a percent."""
    where = Environment({"cpu": "A CPU", "cores": cores, "gpus": {}}, {}, {})
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
def worse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run in which sdpa takes a tenth longer and mha crashes."""
    return folder(tmp_path_factory.mktemp("runs") / "worse", {**TIMES, "sdpa": 0.55}, failing="mha")


def test_it_takes_folders_and_results_files_of_any_name(base: Path, worse: Path, tmp_path: Path) -> None:
    """In any mixture, without the folders that they come from; the verdicts are the same."""
    files = [tmp_path / "before the change.csv", tmp_path / "new.txt"]
    for run, file in zip((base, worse), files, strict=True):
        shutil.copy(run / table.RESULTS, file)
    found = []
    for sides in itertools.product((base, files[0]), (worse, files[1])):
        assert main(["compare", *map(str, sides), "--format", "json", "--to", str(tmp_path / "out")]) == 1
        content = json.loads((tmp_path / "out").read_text())
        found.append([(row["implementation"], row["num_tokens"], row["verdict"]) for row in content["rows"]])
    assert found == found[:1] * 4
    assert [name for name, _, verdict in found[0] if verdict == "slower"] == ["sdpa", "sdpa"]


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ([], 1),
        (["--fail-on", "newly-failing"], 1),
        (["--fail-on", "fixed,missing"], 0),
        (["--fail-on", "baseline"], 1),
        (["--fail-on", ""], 0),
        (["--fail-on", "slower", "--margin", "20%"], 0),
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


@pytest.mark.parametrize("form", FORMS)
def test_a_file_holds_what_is_printed(
    base: Path, worse: Path, tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --to the headline is printed alone; what has no place in CSV stands aside."""
    command = ["compare", str(base), str(worse), "--format", form]
    assert main(command) == 1
    output = capsys.readouterr()
    assert main([*command, "--to", str(tmp_path / "out")]) == 1
    line = capsys.readouterr().out
    assert line.startswith(f"{tmp_path / 'out'}: 2 rows are slower: sdpa N=")
    written = (tmp_path / "out").read_text(encoding="utf-8")
    assert [line.rstrip() for line in written.splitlines()] == [line.rstrip() for line in output.out.splitlines()]
    assert ("2 rows are slower" in output.err) == (form == "csv")


def test_what_changed_is_listed_or_all_rows(base: Path, worse: Path, printed: Printed) -> None:
    """In tables that fit into 100 columns."""
    short, long = (printed("compare", base, worse, *words, status=1) for words in ([], ["--all"]))
    assert ["\nequivalent " in text for text in (short, long)] == [False, True]
    assert max(len(line) for line in long.splitlines() if line.startswith(("slower ", "equivalent "))) <= 100


def test_hostile_texts_format_nothing(
    base: Path, worse: Path, tmp_path: Path, printed: Printed, refused: Refused
) -> None:
    """HTML stays text in a comment, control characters of a failure are made visible, those of a name are refused."""

    def hostile(run: Path, name: str) -> Path:
        rows = table.load(run).replace({"sdpa": name, "signal 11\n[core]": "\x1b[31mred"})
        file = tmp_path / f"{run.name}.csv"
        file.write_bytes(table.as_csv(rows))
        return file

    html = "=1+1<img src=x>|`"
    sides = [hostile(run, html) for run in (base, worse)]
    outputs = [printed("compare", *sides, "--format", form, status=1) for form in FORMS]
    assert not any("\x1b" in text for text in outputs)
    assert html not in re.sub("`[^`]*`", "", outputs[FORMS.index("markdown")])
    assert "control characters" in refused("compare", base, hostile(worse, "\x1bc"))


def test_a_control_that_is_right_is_no_row_of_a_comparison(base: Path, tmp_path: Path, printed: Printed) -> None:
    """With a run that has none, and with another that has one; no other implementation is missed either."""
    new = folder(tmp_path / "new", {**TIMES, CONTROL: 1.0})
    for sides in ([base, new], [new, base], [new, new]):
        text = printed("compare", *sides, "--fail-on", "missing,new,open,slower")
        assert "Two runs of" not in text
        assert CONTROL not in text
