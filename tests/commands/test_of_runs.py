"""The commands that read runs: their arguments, formats and exit statuses."""

import csv
import dataclasses
import io
import itertools
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from markdown_it import MarkdownIt

from bench.analyse.analysed_run import PAGE
from bench.cli import main
from bench.plan.case import CONTROL, Case
from bench.store import table
from bench.store.environment import Environment
from bench.store.journal import JOURNAL
from tests.engine.test_merge import shards
from tests.make import runs
from tests.make.points import point, vit_s
from tests.make.records import ORIGIN, measured, record, samples
from tests.make.results import results
from tests.make.runs import saved

Capture = pytest.CaptureFixture[str]
Printed = Callable[..., str]

FORMS = ("text", "markdown", "csv", "json")

AT = [vit_s(num_tokens=number) for number in (50, 197, 577)]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run folder."""
    return runs.of(tmp_path / "run", [Case(at, name) for at in AT for name in ("eager", "sdpa")])


# show

HOSTILE = (
    "<script>alert(1)</script>",
    "a | b [c](http://d) @user",
    "`code` ![](e)",
    "[/red] x[0]",
    "\x1b[31m\x9b2J\u202ered",
    "two\nlines",
)
"""What other programs may have said."""


def test_a_csv_of_some_rows_is_a_results_file(run: Path, printed: Printed, tmp_path: Path) -> None:
    """It has all columns of results.csv, with the same numbers."""
    some = tmp_path / "some.csv"
    some.write_text(printed("show", run, "--where", "num_tokens in [50, 577]", "--format", "csv"), newline="")
    whole = table.load(run)
    pd.testing.assert_frame_equal(table.load(some), whole[whole["num_tokens"] != 197].reset_index(drop=True))
    assert next(csv.reader(io.StringIO(some.read_text()))) == [*table.FILE]


def test_columns_are_those_that_were_asked_for(run: Path, printed: Printed) -> None:
    """Of each format, beside the implementation; numbers of CSV and JSON are not rounded."""
    asked = ("show", run, "--columns", "speedup,num_tokens,settled", "--top", "1", "--format")
    assert "num_tokens" in printed(*asked, "text")
    assert "| use | implementation | vs eager | num_tokens |" in printed(*asked, "markdown")
    from_csv = pd.read_csv(io.StringIO(printed(*asked, "csv")))
    rows = json.loads(printed(*asked, "json"))
    assert [*from_csv] == [*rows[0]] == ["point", "implementation", "speedup", "num_tokens", "settled"]
    assert from_csv["speedup"].tolist() == pytest.approx([row["speedup"] for row in rows], rel=1e-12)
    assert rows[0]["speedup"] in table.load(run)["speedup"].tolist()


def test_what_other_programs_said_formats_nothing(printed: Printed, tmp_path: Path) -> None:
    """No text commands a terminal or adds a row, and CSV and JSON have it as results.csv does."""
    lost = {Case(AT[0], f"test:{number}"): ("error", said) for number, said in enumerate(HOSTILE)}
    (tmp_path / "alone.csv").write_bytes(table.as_csv(results([Case(AT[0], "eager"), *lost], lost)))
    texts = {form: printed("show", tmp_path / "alone.csv", "--format", form) for form in FORMS}
    for text in texts.values():
        assert not {*text} & {*"\x1b\x9b\u202e"}
    html = MarkdownIt("commonmark").enable("table").render(texts["markdown"])
    assert {*re.findall(r"<(\w+)", html)} <= {"p", "strong", "table", "thead", "tbody", "tr", "th", "td", "code"}
    assert "@user" not in re.sub(r"<code>.*?</code>", "", html)
    assert len(re.findall(r"<td>test:\d</td>\n<td><code>[^<]*</code></td>\n</tr>", html)) == len(HOSTILE)
    shown = table.visible(table.load(tmp_path / "alone.csv")).set_index("implementation")["detail"].to_dict()
    assert {row["implementation"]: row["detail"] for row in json.loads(texts["json"])} == shown
    from_csv = pd.read_csv(io.StringIO(texts["csv"])).set_index("implementation")["detail"].dropna()
    assert from_csv.to_dict() == {name: said for name, said in shown.items() if said}


# compare

TIMES = {"eager": 1.0, "sdpa": 0.5, "mha": 0.8, "online": 0.9}


def folder(path: Path, times: Mapping[str, float] = TIMES, failing: str = "", cores: int = 2) -> Path:
    """Write a run in which each implementation takes its time at two points, give or take a tenth of a percent."""
    where = Environment({"cpu": "A CPU", "cores": cores, "gpus": {}}, {}, {})
    origin = dataclasses.replace(ORIGIN, env_id=where.env_id)
    crash: dict[str, Any] = {"status": "crashed", "origin": origin, "samples": samples(), "detail": "signal 11\n[core]"}
    records = [
        record(case=case, process=n, **crash) if name == failing else measured(case, n, value, origin=origin)
        for n, tokens in itertools.product(range(6), (5, 7))
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


def test_compare_takes_folders_and_results_files_of_any_name(base: Path, worse: Path, tmp_path: Path) -> None:
    """In any mixture, without the folders that they come from; the verdicts are the same."""
    files = [tmp_path / "before the change.csv", tmp_path / "new.txt"]
    for side, file in zip((base, worse), files, strict=True):
        shutil.copy(side / table.RESULTS, file)
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
        ("", 1),
        ("--fail-on newly-failing", 1),
        ("--fail-on fixed,missing", 0),
        ("--fail-on slower --margin 20%", 0),
        ("--margin 0.2", 1),
    ],
)
def test_it_fails_on_the_verdicts_that_are_named(base: Path, worse: Path, options: str, status: int) -> None:
    """Without names on a row that became slower by more than the margin, and on one that fails: no user wants it."""
    assert main(["compare", str(base), str(worse), *options.split()]) == status


def test_a_run_alone_is_compared_with_the_one_of_its_sweep_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, refused: Printed
) -> None:
    """Without a folder it is the last of results/. Another sweep's run lies between both, and one came later."""
    (tmp_path / "results").mkdir()
    for number, of in enumerate([AT, AT, AT[:2], AT]):
        run = runs.of(tmp_path / f"results/{number}", [Case(at, name) for at in of for name in ("eager", "sdpa")])
        os.utime(run / JOURNAL, (number, number))
    monkeypatch.chdir(tmp_path)
    assert main(["compare", "results/1"]) == 0
    assert capsys.readouterr().err.split() == ["BASE", "results/0", "NEW", "results/1"]
    assert main(["compare"]) == 0
    assert capsys.readouterr().err.split() == ["BASE", "results/1", "NEW", "results/3"]
    for first in ("results/0", "results/2", "results/2/results.csv"):
        assert "has no earlier run of its sweep beside it; give BASE and NEW" in refused("compare", first)
    monkeypatch.chdir(tmp_path / "results/0")
    assert "results/ has no runs; give BASE and NEW" in refused("compare")


def test_what_cannot_be_compared_ends_with_3(base: Path, tmp_path: Path, refused: Printed) -> None:
    """The line says which conditions differ; what isn't there can't be forced either."""
    alone = folder(tmp_path / "alone", {"eager": 1.0}, cores=8)
    assert "cores: 2 against 8; --force" in refused("compare", base, alone, status=3)
    line = refused("compare", base, alone, "--force", status=3)
    assert "share no case, besides the baseline, that has a speed-up" in line


@pytest.mark.parametrize("form", FORMS)
def test_a_file_holds_what_is_printed(base: Path, worse: Path, tmp_path: Path, form: str, capsys: Capture) -> None:
    """With --to only the headline is printed; remarks that don't fit into CSV go to stderr."""
    command = ["compare", str(base), str(worse), "--format", form]
    assert main(command) == 1
    output = capsys.readouterr()
    assert main([*command, "--to", str(tmp_path / "out")]) == 1
    line = capsys.readouterr().out
    assert line.startswith(f"{tmp_path / 'out'}: 2 rows are slower: sdpa N=")
    written = (tmp_path / "out").read_text(encoding="utf-8")
    assert [line.rstrip() for line in written.splitlines()] == [line.rstrip() for line in output.out.splitlines()]
    assert ("2 rows are slower" in output.err) == (form == "csv")


def test_a_control_that_is_right_is_no_row_of_a_comparison(base: Path, tmp_path: Path, printed: Printed) -> None:
    """With a run that has none, and with another that has one; no other implementation is missed either."""
    new = folder(tmp_path / "new", {**TIMES, CONTROL: 1.0})
    for sides in ([base, new], [new, base], [new, new]):
        text = printed("compare", *sides, "--fail-on", "missing,new,open,slower")
        assert "Two runs of" not in text
        assert CONTROL not in text


# report, merge, summarise


def test_the_page_lies_in_the_folder_of_the_run(run: Path, printed: Printed, refused: Printed) -> None:
    """The command prints the path of the page; a table, or a run without rows, has none."""
    assert printed("report", run).strip() == str(run / PAGE)
    assert "sdpa" in (run / PAGE).read_text()
    assert "is a file, but the report needs the run folder" in refused("report", run / table.RESULTS)
    (run / JOURNAL).write_bytes(b"")
    assert "has no rows" in refused("report", run)


def test_shards_of_one_machine_are_a_run(tmp_path: Path, printed: Printed) -> None:
    """The command prints how many records were added and how much of the sweep there is; `show` reads the result."""
    parts, out = shards(tmp_path, 2), tmp_path / "out"
    assert "16 records of 4 of 8 points" in printed("merge", out, parts[0])
    assert "32 records of 8 of 8 points" in printed("merge", out, *parts)
    assert "vs eager" in printed("show", out)


PUBLISHED = sorted(file.parent for file in (Path(__file__).parents[2] / "results/published").rglob(JOURNAL))


@pytest.mark.slow
@pytest.mark.parametrize("run", PUBLISHED, ids=lambda run: run.name)
def test_published_results_follow_from_their_journals(run: Path, tmp_path: Path) -> None:
    """A journal gives the table that is kept beside it, to the byte."""
    for name in (JOURNAL, "environment.json"):
        if (run / name).exists():
            shutil.copy(run / name, tmp_path)
    assert main(["summarise", str(tmp_path)]) == 0
    assert (tmp_path / table.RESULTS).read_bytes() == (run / table.RESULTS).read_bytes()


def test_a_journal_in_which_no_line_counts_replaces_nothing(tmp_path: Path, capsys: Capture) -> None:
    """The table and the lines stay, and the fault of the lines is said."""
    run = shutil.copytree(PUBLISHED[0], tmp_path / "run")
    lines = (run / JOURNAL).read_bytes().splitlines(keepends=True)
    (run / JOURNAL).write_bytes(b"".join(b"[" + line[1:] for line in lines))
    before = {path: path.read_bytes() for path in run.iterdir() if path.is_file()}
    assert main(["summarise", str(run)]) == 2
    fault, refusal = capsys.readouterr().err.splitlines()
    assert f"lines 1, 2, 3 and {len(lines) - 3} more" in fault
    assert "has no valid line; results.csv is unchanged" in refusal
    assert {path: path.read_bytes() for path in run.iterdir() if path.is_file()} == before
