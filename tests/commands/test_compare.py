"""`python -m bench compare`: its options, its forms, and how it ends."""

import dataclasses
import itertools
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.analyse.comparison.verdicts import VERDICTS, hyphened
from bench.analyse.summary import summarise
from bench.cli import main
from bench.plan.case import Case
from bench.show.comparison.report import STAMP
from bench.store import environment, journal, table
from bench.store.environment import Environment
from bench.store.record import Origin, Record, Slots
from tests.points import OF_LAYER, of_layer, point

ROOT = Path(__file__).parents[2]
ORIGIN = Origin("env", "a processor", "2.13.0", "abc", "2026-01-01T00:00:00+00:00")
TIMES = {"eager": 1.0, "sdpa": 0.5, "mha": 0.8, "online": 0.9}
PROCESSES = 6

IDENTITY = {"cpu": "A CPU", "cores": 2, "gpus": {}}
STATE = {"load_1min": 0.4, "preflight": {"others_cores": 0.0, "spread": 0.03}}
SELFCHECK = {"detectable": {"1": 0.012}, "false_alarms": 0, "rows": 54, "processes": 10}


def folder(
    path: Path,
    times: Mapping[str, float] | None = None,
    failing: str = "",
    cores: int = 2,
    **state: Any,
) -> Path:
    """Write a run in which each implementation takes its time at two points, give or take a tenth of a percent."""
    where = Environment({**IDENTITY, "cores": cores}, {**STATE, **state}, {})
    origin = dataclasses.replace(ORIGIN, env_id=where.env_id)
    records = [
        measured(Case(point(num_tokens=tokens), name), process, value, origin, failing)
        for process, tokens in itertools.product(range(PROCESSES), (5, 7))
        for name, value in (times or TIMES).items()
    ]
    path.mkdir()
    environment.save(where, path)
    journal.append(path, records)
    table.save(summarise(records, "eager"), path)
    return path


def measured(case: Case, process: int, value_s: float, origin: Origin, failing: str) -> Record:
    """Return a record of two rounds, or of a failure."""
    if case.implementation == failing:
        return Record(case, process, "crashed", origin, detail="signal 11\n[core dumped]")
    value_s *= random.Random(f"{case.name} {process}").lognormvariate(0, 1e-3)
    slots = Slots((0, 1), ((value_s,), (value_s,)), (0, 0), (0, 0))
    return Record(case, process, "ok", origin, slots=slots, metrics={"calls_per_timing": 1, "settled": True})


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Return a run."""
    return folder(tmp_path / "base")


@pytest.fixture
def slower(tmp_path: Path) -> Path:
    """Return a run in which sdpa takes a tenth longer."""
    return folder(tmp_path / "slower", {**TIMES, "sdpa": 0.55})


# how it ends


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ([], 1),
        (["--fail-on", "slower"], 1),
        (["--fail-on", "newly-failing,missing"], 0),
        (["--fail-on", "baseline"], 1),
        (["--fail-on", ""], 0),
        (["--margin", "0.2"], 0),
    ],
)
def test_it_fails_on_what_it_is_told_to(base: Path, slower: Path, options: list[str], status: int) -> None:
    """A row that became slower, where nothing else is asked for, and nothing within the margin."""
    assert main(["compare", str(base), str(slower), *options]) == status


@pytest.mark.parametrize(
    ("verdict", "status"), [(None, 0), ("newly-failing", 1), ("slower,newly-failing", 1), ("missing", 0)]
)
def test_a_new_failure_fails_where_it_is_named(base: Path, tmp_path: Path, verdict: str | None, status: int) -> None:
    """What crashed isn't slower."""
    new = folder(tmp_path / "new", failing="mha")
    options = ["--fail-on", verdict] if verdict else []
    assert main(["compare", str(base), str(new), *options]) == status


def test_an_unknown_verdict_ends_with_2_and_the_names(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is read: the second path isn't there."""
    assert main(["compare", str(base), str(tmp_path / "nowhere"), "--fail-on", "slower,same"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "unknown verdict 'same'" in line
    assert all(hyphened(verdict) in line for verdict in VERDICTS)


@pytest.mark.parametrize("share", ["-0.1", "nan", "inf"])
def test_an_impossible_margin_ends_with_2(base: Path, share: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In one line."""
    assert main(["compare", str(base), str(base), f"--margin={share}"]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_other_company_warns_in_one_line(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run that measured one implementation less is compared, and said to be another company."""
    fewer = folder(tmp_path / "fewer", {name: value for name, value in TIMES.items() if name != "mha"})
    assert main(["compare", str(base), str(fewer)]) == 0
    assert capsys.readouterr().out.count("warning: cases were measured in other company (mha in BASE alone)") == 1


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("content", [None, "", "a,b\n1,2\n", "schema_version\n", "\x00\xff", '{"a": [1]}\n'])
def test_what_is_no_result_ends_with_2_and_one_line(
    base: Path, tmp_path: Path, side: int, content: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing, an empty and a foreign file, and one without rows, on either side."""
    path = tmp_path / "other.csv"
    if content is not None:
        path.write_text(content, encoding="latin-1")
    sides = [str(base), str(base)]
    sides[side] = str(path)
    assert main(["compare", *sides]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "other.csv" in line


@pytest.mark.parametrize("side", [0, 1])
def test_a_newer_schema_ends_with_2(base: Path, slower: Path, side: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Whichever side is newer, it is named with both numbers."""
    newer = (base, slower)[side] / table.RESULTS
    first, *rows = newer.read_text().splitlines()
    newer.write_text("\n".join([first, *(row.rpartition(",")[0] + ",99" for row in rows)]) + "\n")
    assert main(["compare", str(base), str(slower)]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert str(newer) in line
    assert "schema_version 99" in line


def test_tables_that_share_no_case_end_with_3(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line says which columns keep them apart; what isn't there can't be forced either."""
    results = table.load(base)
    other = tmp_path / "other.csv"
    results.assign(threads=4).to_csv(other, index=False)
    for options in ([], ["--force"]):
        assert main(["compare", str(base / table.RESULTS), str(other), *options]) == 3
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert line.endswith("share no case: threads is 1 in BASE and 4 in NEW")


def test_another_machine_ends_with_3(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line says what differs, and how to compare all the same."""
    other = folder(tmp_path / "other", cores=8)
    assert main(["compare", str(base), str(other)]) == 3
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "cores: 2 against 8; --force" in line


def test_layers_with_columns_of_their_own_are_matched(tmp_path: Path) -> None:
    """A run of all layers compared with itself misses nothing."""
    records = [
        measured(Case(of_layer(layer), name), process, value, ORIGIN, "")
        for process, layer in itertools.product(range(PROCESSES), OF_LAYER)
        for name, value in TIMES.items()
    ]
    journal.append(tmp_path, records)
    table.save(summarise(records, "eager"), tmp_path)
    for options in ([], ["--baseline", "sdpa"]):
        failing = ["--fail-on", "missing,new,inconclusive,slower"]
        assert main(["compare", str(tmp_path), str(tmp_path), *failing, *options]) == 0


# what it says


def test_the_hint_names_another_baseline_and_that_clears_the_innocent(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Eager became a fifth faster: all others look slower, until one of them is the baseline."""
    new = folder(tmp_path / "new", {**TIMES, "eager": 0.8})
    assert main(["compare", str(base), str(new)]) == 1
    said = capsys.readouterr().out
    (hint,) = [line for line in said.splitlines() if line.startswith("hint: ")]
    assert "6 of 6 judged rows, of 3 implementations, became slower together: eager" in hint
    other = hint.partition("--baseline ")[2].split()[0]
    assert main(["compare", str(base), str(new), "--baseline", other]) == 0
    said = capsys.readouterr().out
    assert f"baseline: {other} in place of eager" in said
    assert "hint: " not in said
    assert said.splitlines()[-1] == "2 faster, 4 equivalent, 2 baseline"


def test_the_baseline_is_named_in_every_form(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever reads any of them knows what the ratios refer to."""
    for form, words in [
        ("terminal", "baseline: sdpa in place of"),
        ("markdown", "by speed-ups over `sdpa`"),
        ("csv", ",sdpa,equivalent,vit,eager,"),
        ("json", '"baseline": "sdpa", "rebased": true'),
    ]:
        assert main(["compare", str(base), str(base), "--baseline", "sdpa", "--format", form]) == 0
        assert words in capsys.readouterr().out


def test_another_baseline_reads_the_journal_beside_results_csv(base: Path) -> None:
    """The folder and its results.csv are the same run."""
    results = str(base / table.RESULTS)
    assert main(["compare", results, results, "--baseline", "sdpa", "--fail-on", "inconclusive"]) == 0


def test_another_baseline_reads_the_good_lines_of_a_journal(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line that is no record is told aside, with its number, and changes neither the output nor the file."""
    assert main(["compare", str(base), str(base), "--baseline", "sdpa", "--format", "csv"]) == 0
    good = capsys.readouterr().out
    path = base / journal.JOURNAL
    path.write_bytes(b"rubbish\n" + path.read_bytes())
    before = path.read_bytes()
    assert main(["compare", str(base), str(base), "--baseline", "sdpa", "--format", "csv"]) == 0
    said = capsys.readouterr()
    assert said.out == good
    assert f"warning: {path}: line 1 is no record" in said.err
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["copy.csv", "results.csv"])
def test_another_baseline_without_a_journal_is_refused(
    base: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table alone has no rounds to pair anew in, also where some other run's journal lies beside it."""
    path = (base if name == "copy.csv" else tmp_path) / name
    path.write_bytes((base / table.RESULTS).read_bytes())
    assert main(["compare", str(base), str(path), "--baseline", "sdpa"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "--baseline needs the journal.jsonl" in line
    assert str(path) in line


def test_an_unknown_baseline_is_refused_with_what_both_runs_hold(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only what was measured on both sides can be the baseline."""
    new = folder(tmp_path / "new", {"eager": 1.0, "sdpa": 0.5}, failing="mha")
    assert main(["compare", str(base), str(new), "--baseline", "mha"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.endswith("unknown baseline 'mha'; expected one of eager, sdpa")


def test_another_state_warns_in_one_line(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A busy machine is compared, and said to have been busy."""
    busy = folder(tmp_path / "busy", load_1min=3.5)
    assert main(["compare", str(base), str(busy)]) == 0
    assert capsys.readouterr().out.count("warning: ") == 1
    assert main(["compare", str(base), str(base)]) == 0
    assert "warning: " not in capsys.readouterr().out


@pytest.mark.parametrize("side", [0, 1])
def test_the_self_check_of_the_machine_is_quoted(
    base: Path, tmp_path: Path, side: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whichever run has one."""
    checked = folder(tmp_path / "checked", selfcheck=SELFCHECK)
    sides = [str(base), str(base)]
    sides[side] = str(checked)
    assert main(["compare", *sides]) == 0
    assert "this machine detects changes of 1.2% at 10 processes" in capsys.readouterr().out


# its forms


@pytest.mark.parametrize("form", ["terminal", "markdown", "csv", "json"])
def test_a_file_holds_what_standard_output_would(
    base: Path, slower: Path, tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --to what comes first is printed alone, and the exit status is the same."""
    command = ["compare", str(base), str(slower), "--format", form]
    assert main(command) == 1
    printed = capsys.readouterr().out
    assert main([*command, "--to", str(tmp_path / "out")]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"{tmp_path / 'out'}: 2 slower, 4 equivalent, 2 baseline: 2 rows are slower: sdpa ")
    written = (tmp_path / "out").read_text(encoding="utf-8")
    assert [line.rstrip() for line in written.splitlines()] == [line.rstrip() for line in printed.splitlines()]


@pytest.mark.parametrize("form", ["terminal", "markdown", "csv", "json"])
def test_every_form_is_stamped_where_it_was_forced(
    base: Path, tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """On standard output, in a file and in what is said aside; status and verdicts are as ever."""
    other = folder(tmp_path / "other", {**TIMES, "sdpa": 0.55}, failing="mha", cores=8, load_1min=5.0)
    command = ["compare", str(base), str(other), "--force", "--format", form]
    assert main(command) == 1
    printed = capsys.readouterr()
    assert main([*command, "--to", str(tmp_path / "out")]) == 1
    said = capsys.readouterr()
    for text in (printed.out, printed.err, said.out, (tmp_path / "out").read_text(encoding="utf-8")):
        unstamped = [line for line in text.splitlines() if STAMP not in line]
        assert [line for line in unstamped if not is_markup(line)] == []
    assert "slower" in printed.out
    assert "cores: 2 against 8" in printed.out


def is_markup(line: str) -> bool:
    """Return whether a line says nothing by itself: a title, the frame of a table, the end of a block."""
    return line in ("", "</details>", "]}") or line.startswith(("| ---", "stamp,baseline,"))


def test_conditions_that_are_alike_need_no_stamp(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--force where nothing was to be forced changes nothing."""
    assert main(["compare", str(base), str(base), "--force"]) == 0
    assert STAMP not in capsys.readouterr().out


def test_json_is_json_and_notes_of_csv_stand_aside(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Standard output holds the data alone."""
    busy = folder(tmp_path / "busy", load_1min=3.5)
    assert main(["compare", str(base), str(busy), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert any(note.startswith("warning: ") for note in found["notes"])
    assert main(["compare", str(base), str(busy), "--format", "csv"]) == 0
    said = capsys.readouterr()
    assert "warning: " in said.err
    assert len(said.out.splitlines()) == 1 + len(found["rows"])


def test_a_file_that_cannot_be_written_ends_with_2(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line with the file."""
    assert main(["compare", str(base), str(base), "--to", str(tmp_path / "no" / "file")]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.endswith("file can't be written: No such file or directory")


def test_a_picture_is_drawn(base: Path, slower: Path, tmp_path: Path) -> None:
    """Beside the output, and the status is the same."""
    assert main(["compare", str(base), str(slower), "--plot", str(tmp_path / "changes.png")]) == 1
    assert (tmp_path / "changes.png").read_bytes().startswith(b"\x89PNG")


def test_runs_that_share_the_baseline_alone_end_with_3(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is judged, so nothing was compared: one line, no picture, and not the status of a fine run."""
    alone = folder(tmp_path / "alone", {"eager": 1.0})
    assert main(["compare", str(base), str(alone), "--plot", str(tmp_path / "changes.png")]) == 3
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "share 2 cases" in line
    assert not (tmp_path / "changes.png").exists()


@pytest.mark.parametrize("form", ["terminal", "markdown", "csv", "json"])
def test_runs_that_share_few_cases_say_so_first(
    base: Path, tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first line of every form has the counts of both sides; what was compared decides the status."""
    other = folder(tmp_path / "other")
    results = table.load(other)
    few = results["num_tokens"].eq(5) & results["implementation"].isin(["eager", "sdpa"])
    table_of = results.assign(batch=results["batch"].where(few, 64))
    (tmp_path / "few").mkdir()
    table.save(table_of, tmp_path / "few")
    assert main(["compare", str(base), str(tmp_path / "few"), "--format", form]) == 0
    said = capsys.readouterr()
    text = said.err if form == "csv" else said.out
    first = json.loads(text)["summary"][0] if form == "json" else text.splitlines()[0]
    assert "they share 2 of 14 cases; 6 are in BASE alone and 6 in NEW alone" in first


def test_a_list_of_few_shared_cases_holds_those_alone(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What one run has alone is counted and not listed, if it is most."""
    few = table.load(base)
    few = few[few["num_tokens"].eq(5) & few["implementation"].isin(["eager", "sdpa"])]
    (tmp_path / "few").mkdir()
    table.save(few, tmp_path / "few")
    assert main(["compare", str(base), str(tmp_path / "few")]) == 0
    said = capsys.readouterr().out
    assert "not listed: 6 cases" in said
    assert not any(line.startswith("missing ") for line in said.splitlines())


def test_runs_that_were_asked_for_differently_say_so_first(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sweep and effort stand above the counts; runs that were asked for alike begin with the counts."""
    sides = []
    for name, processes in (("quick", 3), ("full", 10)):
        path = tmp_path / name
        shutil.copytree(base, path)
        (path / environment.ENVIRONMENT).unlink()
        environment.save(Environment({**IDENTITY}, STATE, {"sweep": name, "effort": {"processes": processes}}), path)
        sides.append(str(path))
    assert main(["compare", *sides]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert "quick against full" in first
    assert "3 against 10" in first
    assert second.startswith("6 equivalent, 2 baseline: ")
    assert main(["compare", sides[0], sides[0]]) == 0
    assert capsys.readouterr().out.startswith("6 equivalent, 2 baseline: ")


def test_a_picture_by_another_name_ends_with_2(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is compared."""
    assert main(["compare", str(base), str(base), "--plot", "changes.doc"]) == 2
    assert "must end in .png or .svg" in capsys.readouterr().err


@pytest.mark.slow
def test_comparing_needs_no_torch(base: Path, slower: Path, tmp_path: Path) -> None:
    """Results are compared on any laptop: no form, no other baseline and no picture brings torch."""
    options = ["--baseline", "mha", "--plot", str(tmp_path / "changes.png"), "--format", "markdown"]
    command = ["compare", str(base), str(slower), *options]
    code = f"import sys; from bench.cli import main; main({command!r}); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
