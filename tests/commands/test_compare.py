"""`python -m bench compare`: its options, its forms, and how it ends."""

import dataclasses
import itertools
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.analyse.comparison import VERDICTS, hyphened
from bench.cli import main
from bench.plan.case import CONTROL, Case
from bench.show.comparison.report import STAMP
from bench.store import environment, journal, table
from bench.store.environment import Environment
from tests.examples import ORIGIN, measured, record, saved, timed
from tests.points import OF_LAYER, of_layer, point

ROOT = Path(__file__).parents[2]
TIMES = {"eager": 1.0, "sdpa": 0.5, "mha": 0.8, "online": 0.9}
PROCESSES = 6
FORMS = ("terminal", "markdown", "csv", "json")

IDENTITY = {"cpu": "A CPU", "cores": 2, "gpus": {}}
STATE = {"load_1min": 0.4, "preflight": {"others_cores": 0.0, "spread": 0.03}}
SELFCHECK = {"detectable": {"1": 0.012}, "processes": 10}


def folder(path: Path, times: Mapping[str, float] = TIMES, failing: str = "", cores: int = 2, **state: Any) -> Path:
    """Write a run in which each implementation takes its time at two points, give or take a tenth of a percent."""
    where = Environment({**IDENTITY, "cores": cores}, {**STATE, **state}, {})
    origin = dataclasses.replace(ORIGIN, env_id=where.env_id)
    crash: dict[str, Any] = {"status": "crashed", "origin": origin, "samples": timed(), "detail": "signal 11\n[core]"}
    records = [
        record(case=case, process=n, **crash) if name == failing else measured(case, n, value, origin=origin)
        for n, tokens in itertools.product(range(PROCESSES), (5, 7))
        for name, value in times.items()
        for case in [Case(point(num_tokens=tokens), name)]
    ]
    return saved(path, records, where)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run, and one in which sdpa takes a tenth longer; both are for copying."""
    path = tmp_path_factory.mktemp("runs")
    folder(path / "base")
    folder(path / "slower", {**TIMES, "sdpa": 0.55})
    return path


@pytest.fixture
def base(runs: Path, tmp_path: Path) -> Path:
    """Return a run."""
    return shutil.copytree(runs / "base", tmp_path / "base")


@pytest.fixture
def slower(runs: Path, tmp_path: Path) -> Path:
    """Return a run in which sdpa takes a tenth longer."""
    return shutil.copytree(runs / "slower", tmp_path / "slower")


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """Return a folder for results that share two cases with the run."""
    (tmp_path / "few").mkdir()
    return tmp_path / "few"


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


@pytest.mark.parametrize(("verdict", "status"), [(None, 1), ("newly-failing", 1), ("slower", 0), ("missing", 0)])
def test_a_new_failure_fails_unless_others_are_named(
    base: Path, tmp_path: Path, verdict: str | None, status: int
) -> None:
    """What crashed isn't slower, and no user wants it."""
    new = folder(tmp_path / "new", failing="mha")
    options = ["--fail-on", verdict] if verdict else []
    assert main(["compare", str(base), str(new), *options]) == status


def test_an_unknown_verdict_ends_with_2_and_the_names(base: Path, refused: Callable[..., str]) -> None:
    """Before anything is read: the second path isn't there."""
    line = refused("compare", base, base / "nowhere", "--fail-on", "slower,same")
    assert all(word in line for word in ("'same'", *map(hyphened, VERDICTS)))


@pytest.mark.parametrize("share", ["-0.1", "nan", "inf"])
def test_an_impossible_margin_ends_with_2(base: Path, share: str, refused: Callable[..., str]) -> None:
    """The line names it."""
    assert f"margin = {share}" in refused("compare", base, base, f"--margin={share}")


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("content", [None, "", "a,b\n1,2\n", "schema_version\n", "\x00\xff", '{"a": [1]}\n'])
def test_what_is_no_result_ends_with_2(
    base: Path, tmp_path: Path, side: int, content: str | None, refused: Callable[..., str]
) -> None:
    """A missing, an empty and a foreign file, and one without rows, on either side."""
    path = tmp_path / "other.csv"
    if content is not None:
        path.write_text(content, encoding="latin-1")
    assert "other.csv" in refused("compare", *[path, base, path][side : side + 2])


@pytest.mark.parametrize("side", [0, 1])
def test_a_newer_schema_ends_with_2(base: Path, slower: Path, side: int, refused: Callable[..., str]) -> None:
    """Whichever side is newer, it is named with its number."""
    newer = (base, slower)[side] / table.RESULTS
    first, *rows = newer.read_text().splitlines()
    newer.write_text("\n".join([first, *(row.rpartition(",")[0] + ",99" for row in rows)]) + "\n")
    line = refused("compare", base, slower)
    assert str(newer) in line
    assert "schema_version 99" in line


def test_tables_that_share_no_case_end_with_3(base: Path, tmp_path: Path, refused: Callable[..., str]) -> None:
    """The line says which columns keep them apart; what isn't there can't be forced either."""
    other = tmp_path / "other.csv"
    table.load(base).assign(threads=4).to_csv(other, index=False)
    for options in ([], ["--force"]):
        line = refused("compare", base / table.RESULTS, other, *options, status=3)
        assert line.endswith("share no case: threads is 1 in BASE and 4 in NEW")


def test_another_machine_ends_with_3(base: Path, tmp_path: Path, refused: Callable[..., str]) -> None:
    """The line says what differs, and how to compare all the same."""
    line = refused("compare", base, folder(tmp_path / "other", cores=8), status=3)
    assert "cores: 2 against 8; --force" in line


def test_layers_with_columns_of_their_own_are_matched(tmp_path: Path) -> None:
    """A run of all layers compared with itself misses nothing."""
    records = [
        measured(Case(of_layer(layer), name), process, value)
        for process, layer in itertools.product(range(PROCESSES), OF_LAYER)
        for name, value in TIMES.items()
    ]
    run = str(saved(tmp_path / "run", records))
    for options in ([], ["--baseline", "sdpa"]):
        assert main(["compare", run, run, "--fail-on", "missing,new,inconclusive,slower", *options]) == 0


# what it says


def test_the_hint_names_another_baseline_and_that_clears_the_innocent(
    base: Path, tmp_path: Path, printed: Callable[..., str]
) -> None:
    """Eager became a fifth faster: all others look slower, until one of them is the baseline."""
    new = folder(tmp_path / "new", {**TIMES, "eager": 0.8})
    (hint,) = [line for line in printed("compare", base, new, status=1).splitlines() if line.startswith("hint: ")]
    assert all(words in hint for words in ("6 of 6", "3 implementations", "slower", "eager"))
    other = hint.partition("--baseline ")[2].split()[0]
    rebased = printed("compare", base, new, "--baseline", other)
    assert f"{other} in place of eager" in rebased
    assert "hint: " not in rebased
    assert rebased.splitlines()[-1] == "2 faster, 4 equivalent, 2 baseline"


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("terminal", "baseline: sdpa in place of"),
        ("markdown", "by speed-ups over sdpa"),
        ("csv", ",sdpa,equivalent,vit,eager,"),
        ("json", '"baseline": "sdpa", "rebased": true'),
    ],
)
def test_the_baseline_is_named_in_every_form(base: Path, form: str, words: str, printed: Callable[..., str]) -> None:
    """Whoever reads any of them knows what the ratios refer to; results.csv stands for its folder."""
    assert words in printed("compare", base, base / table.RESULTS, "--baseline", "sdpa", "--format", form)


def test_another_baseline_reads_the_good_lines_of_a_journal(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line that is no record is named on stderr, with its number, and changes neither the output nor the file."""
    command = ["compare", str(base), str(base), "--baseline", "sdpa", "--format", "csv"]
    assert main(command) == 0
    good = capsys.readouterr().out
    path = base / journal.JOURNAL
    path.write_bytes(b"rubbish\n" + path.read_bytes())
    before = path.read_bytes()
    assert main(command) == 0
    output = capsys.readouterr()
    assert output.out == good
    assert f"warning: {path}: line 1 is no record" in output.err
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["copy.csv", "results.csv"])
def test_another_baseline_without_a_journal_is_refused(
    base: Path, tmp_path: Path, name: str, refused: Callable[..., str]
) -> None:
    """A table alone has no rounds to pair anew in, also where some other run's journal lies beside it."""
    path = (base if name == "copy.csv" else tmp_path) / name
    path.write_bytes((base / table.RESULTS).read_bytes())
    line = refused("compare", base, path, "--baseline", "sdpa")
    assert "--baseline needs the journal.jsonl" in line
    assert str(path) in line


def test_an_unknown_baseline_is_refused_with_what_both_runs_hold(
    base: Path, tmp_path: Path, refused: Callable[..., str]
) -> None:
    """Only what was measured on both sides can be the baseline."""
    new = folder(tmp_path / "new", {"eager": 1.0, "sdpa": 0.5}, failing="mha")
    assert refused("compare", base, new, "--baseline", "mha").endswith("'mha'; expected one of eager, sdpa")


def test_what_else_changed_warns_in_one_line(base: Path, tmp_path: Path, printed: Callable[..., str]) -> None:
    """A run of a busy machine, and one that measured one implementation less, are compared."""
    busy = folder(tmp_path / "busy", load_1min=3.5)
    fewer = folder(tmp_path / "fewer", {name: value for name, value in TIMES.items() if name != "mha"})
    for other, words in ((busy, "3.5"), (fewer, "mha in BASE alone")):
        (warning,) = [line for line in printed("compare", base, other).splitlines() if line.startswith("warning: ")]
        assert words in warning
    assert "warning: " not in printed("compare", base, base)


@pytest.mark.parametrize("side", [0, 1])
def test_the_self_check_of_the_machine_is_quoted(
    base: Path, tmp_path: Path, side: int, printed: Callable[..., str]
) -> None:
    """Whichever run has one."""
    checked = folder(tmp_path / "checked", selfcheck=SELFCHECK)
    assert "changes of 1.2% at 10 processes" in printed("compare", *[checked, base, checked][side : side + 2])


def test_a_baseline_that_a_table_does_not_name_is_told(base: Path, tmp_path: Path, printed: Callable[..., str]) -> None:
    """It is not guessed from ratios of 1; the comparison says so."""
    unnamed = tmp_path / "unnamed.csv"
    table.load(base).assign(baseline=None).to_csv(unnamed, index=False)
    assert "baseline of BASE is not known" in printed("compare", unnamed, base)
    assert "is not known" not in printed("compare", base, base)


# its forms


@pytest.mark.parametrize("form", FORMS)
def test_a_file_holds_what_standard_output_would(
    base: Path, slower: Path, tmp_path: Path, form: str, printed: Callable[..., str]
) -> None:
    """With --to what comes first is printed alone, and the exit status is the same."""
    command = ["compare", base, slower, "--format", form]
    printed = printed(*command, status=1)
    (line,) = printed(*command, "--to", tmp_path / "out", status=1).splitlines()
    assert line.startswith(f"{tmp_path / 'out'}: 2 rows are slower: sdpa N=5 -9")
    written = (tmp_path / "out").read_text(encoding="utf-8")
    assert [line.rstrip() for line in written.splitlines()] == [line.rstrip() for line in printed.splitlines()]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_stamped_where_it_was_forced(
    base: Path, tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """On standard output, in a file and in what is said aside; status and verdicts are as ever."""
    other = folder(tmp_path / "other", {**TIMES, "sdpa": 0.55}, failing="mha", cores=8, load_1min=5.0)
    command = ["compare", str(base), str(other), "--force", "--format", form]
    assert main(command) == 1
    printed = capsys.readouterr()
    assert main([*command, "--to", str(tmp_path / "out")]) == 1
    aside = capsys.readouterr().out
    for text in (printed.out, printed.err, aside, (tmp_path / "out").read_text(encoding="utf-8")):
        unstamped = [line for line in text.splitlines() if STAMP not in line]
        assert [line for line in unstamped if not is_markup(line)] == []
    assert "slower" in printed.out
    assert "cores: 2 against 8" in printed.out


def is_markup(line: str) -> bool:
    """Return whether a line says nothing by itself: a title, the frame of a table, the end of a block."""
    return line in ("", "</details>", "]}") or line.startswith(("| ---", "stamp,baseline,"))


def test_conditions_that_are_alike_need_no_stamp(base: Path, printed: Callable[..., str]) -> None:
    """--force where nothing was to be forced changes nothing."""
    assert STAMP not in printed("compare", base, base, "--force")


def test_json_is_json_and_notes_of_csv_stand_aside(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Standard output holds the data alone."""
    busy = folder(tmp_path / "busy", load_1min=3.5)
    assert main(["compare", str(base), str(busy), "--format", "json"]) == 0
    comparison = json.loads(capsys.readouterr().out)
    assert any(note.startswith("warning: ") for note in comparison["notes"])
    assert main(["compare", str(base), str(busy), "--format", "csv"]) == 0
    output = capsys.readouterr()
    assert "warning: " in output.err
    assert len(output.out.splitlines()) == 1 + len(comparison["rows"])


def test_a_file_that_cannot_be_written_ends_with_2(base: Path, tmp_path: Path, refused: Callable[..., str]) -> None:
    """The line names the file and the reason."""
    line = refused("compare", base, base, "--to", tmp_path / "no" / "file")
    assert line.endswith("file can't be written: No such file or directory")


def test_a_picture_is_drawn(base: Path, slower: Path, tmp_path: Path) -> None:
    """Beside the output, and the status is the same."""
    assert main(["compare", str(base), str(slower), "--plot", str(tmp_path / "changes.png")]) == 1
    assert (tmp_path / "changes.png").read_bytes().startswith(b"\x89PNG")


def test_runs_that_share_the_baseline_alone_end_with_3(base: Path, tmp_path: Path, refused: Callable[..., str]) -> None:
    """Nothing is judged, so nothing was compared: one line, no picture, and not the status of a fine run."""
    alone, picture = folder(tmp_path / "alone", {"eager": 1.0}), tmp_path / "changes.png"
    assert "share 2 cases" in refused("compare", base, alone, "--plot", picture, status=3)
    assert not picture.exists()


@pytest.mark.parametrize("form", FORMS)
def test_runs_that_share_few_cases_say_so_first(
    base: Path, few: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first line of every form has the counts of both sides; what was compared decides the status."""
    results = table.load(base)
    shared = results["num_tokens"].eq(5) & results["implementation"].isin(["eager", "sdpa"])
    table.save(results.assign(batch=results["batch"].where(shared, 64)), few)
    assert main(["compare", str(base), str(few), "--format", form]) == 0
    output = capsys.readouterr()
    text = output.err if form == "csv" else output.out
    first = json.loads(text)["summary"][0] if form == "json" else text.splitlines()[0]
    assert "share 2 of 14 cases; 6 are in BASE alone and 6 in NEW alone" in first


def test_a_list_of_few_shared_cases_holds_those_alone(base: Path, few: Path, printed: Callable[..., str]) -> None:
    """What one run has alone is counted and not listed, if it is most."""
    results = table.load(base)
    table.save(results[results["num_tokens"].eq(5) & results["implementation"].isin(["eager", "sdpa"])], few)
    output = printed("compare", base, few, "--all")
    assert "not listed: 6 rows" in output
    assert listed(output) == ["equivalent", "baseline"]


def listed(output: str) -> list[str]:
    """Return the verdicts of the rows that a comparison lists."""
    rows = output[output.index("\nverdict ") :].splitlines()[2:] if "\nverdict " in output else []
    return [line.split()[0] for line in rows if " N=" in line]


def test_only_what_changed_is_listed_unless_all_rows_are_asked_for(
    base: Path, slower: Path, printed: Callable[..., str]
) -> None:
    """Verdicts of every row are counted in any case."""
    short, long = printed("compare", base, slower, status=1), printed("compare", base, slower, "--all", status=1)
    assert listed(short) == ["slower"] * 2
    assert listed(long) == ["slower"] * 2 + ["equivalent"] * 4 + ["baseline"] * 2
    assert short.splitlines()[-1] == long.splitlines()[-1] == "2 slower, 4 equivalent, 2 baseline"
    assert listed(printed("compare", base, base)) == []


def test_runs_that_were_asked_for_differently_say_so_first(
    base: Path, tmp_path: Path, printed: Callable[..., str]
) -> None:
    """Sweep and effort stand above what was found; the output on runs that were asked for alike begins with that."""
    for name, processes in (("quick", 3), ("full", 10)):
        shutil.copytree(base, tmp_path / name)
        (tmp_path / name / environment.ENVIRONMENT).unlink()
        context = {"sweep": name, "effort": {"processes": processes}}
        environment.save(Environment({**IDENTITY}, STATE, context), tmp_path / name)
    first, second, *_ = printed("compare", tmp_path / "quick", tmp_path / "full").splitlines()
    assert all(words in first for words in ("quick against full", "3 against 10"))
    assert second.startswith("every judged row is equivalent")
    assert printed("compare", tmp_path / "quick", tmp_path / "quick").startswith(second)


def test_a_picture_by_another_name_ends_with_2(base: Path, refused: Callable[..., str]) -> None:
    """Before anything is compared."""
    assert "must end in .png or .svg" in refused("compare", base, base, "--plot", "changes.doc")


@pytest.mark.slow
def test_comparing_needs_no_torch(base: Path, slower: Path, tmp_path: Path) -> None:
    """Results are compared on any laptop: no form, no other baseline and no picture brings torch."""
    options = ["--baseline", "mha", "--plot", str(tmp_path / "changes.png"), "--format", "markdown"]
    command = ["compare", str(base), str(slower), *options]
    code = f"import sys; from bench.cli import main; main({command!r}); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


# the control


@pytest.mark.parametrize("side", ["BASE", "NEW"])
@pytest.mark.parametrize("form", FORMS)
def test_a_side_in_which_identical_code_differs_is_named_first(
    base: Path, tmp_path: Path, side: str, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the first lines of every form; the other side is not."""
    off = folder(tmp_path / "off", {**TIMES, CONTROL: 1.1})
    sides = [off, base] if side == "BASE" else [base, off]
    assert main(["compare", *map(str, sides), "--format", form]) == 0
    captured = capsys.readouterr()
    said = captured.err if form == "csv" else captured.out
    assert said.count("identical code differs") == 1
    assert f"in {side} identical code differs" in said
    if form != "json":
        assert "identical code differs" in said.splitlines()[0]


@pytest.mark.parametrize("options", [[], ["--baseline", "sdpa"]])
def test_a_control_that_is_right_is_no_row_of_a_comparison(
    base: Path, tmp_path: Path, options: list[str], printed: Callable[..., str]
) -> None:
    """With an older run, which has none, and with another that has one; no other implementation is missed either."""
    new = folder(tmp_path / "new", {**TIMES, CONTROL: 1.0})
    for sides in ([base, new], [new, base], [new, new]):
        text = printed("compare", *sides, *options, "--fail-on", "missing,new,inconclusive,slower")
        assert "identical code" not in text
        assert CONTROL not in text


def test_the_control_is_no_baseline(base: Path, tmp_path: Path, refused: Callable[..., str]) -> None:
    """It is no implementation that both runs share."""
    new = folder(tmp_path / "new", {**TIMES, CONTROL: 1.0})
    line = refused("compare", new, new, "--baseline", CONTROL)
    assert f"expected one of {', '.join(TIMES)}" in line
