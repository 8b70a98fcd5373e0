"""`python -m bench compare`: its options, its forms, and how it ends."""

import dataclasses
import itertools
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.cli import main
from bench.plan.case import CONTROL, Case
from bench.plan.sweep import Effort, Sweep
from bench.plan.verdicts import VERDICTS, hyphened
from bench.show.comparison.report import STAMP
from bench.store import environment, journal, plan, table
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


def test_impossible_options_end_with_2_before_anything_is_read(base: Path, refused: Refused) -> None:
    """An unknown verdict with the names that there are, a margin, and the name of a picture."""
    line = refused("compare", base, base / "nowhere", "--fail-on", "slower,same")
    assert all(word in line for word in ("'same'", *map(hyphened, VERDICTS)))
    assert "must end in .png or .svg" in refused("compare", base, base, "--plot", "changes.doc")
    for share in ("-0.1", "nan", "inf"):
        assert f"margin = {share}" in refused("compare", base, base, f"--margin={share}")


@pytest.mark.parametrize("side", [0, 1])
def test_what_is_no_result_ends_with_2(base: Path, tmp_path: Path, side: int, refused: Refused) -> None:
    """A missing file, an empty one and a newer schema, on either side; the tests of the table have all others."""
    path = tmp_path / "other.csv"
    for content, words in ((None, "does not exist"), ("", ""), ("schema_version\n99\n", "schema_version 99")):
        if content is not None:
            path.write_text(content)
        line = refused("compare", *[path, base, path][side : side + 2])
        assert str(path) in line
        assert words in line


def test_what_cannot_be_compared_ends_with_3(base: Path, tmp_path: Path, refused: Refused) -> None:
    """The line says which columns differ, which conditions differ, or how many cases are shared.

    What isn't there can't be forced either. Nothing was judged, so there is no picture.
    """
    other, picture = tmp_path / "other.csv", tmp_path / "changes.png"
    table.load(base).assign(threads=4).to_csv(other, index=False)
    for options in ([], ["--force"]):
        line = refused("compare", base / table.RESULTS, other, *options, status=3)
        assert line.endswith("share no case: threads is 1 in BASE and 4 in NEW")
    line = refused("compare", base, folder(tmp_path / "other", cores=8), status=3)
    assert "cores: 2 against 8; --force" in line
    alone = folder(tmp_path / "alone", {"eager": 1.0})
    assert "share 2 cases" in refused("compare", base, alone, "--plot", picture, status=3)
    assert not picture.exists()


# another baseline


def test_the_hint_names_a_baseline_and_that_clears_the_innocent(base: Path, tmp_path: Path, printed: Printed) -> None:
    """Eager became a fifth faster: all others look slower, until one of them is the baseline."""
    new = folder(tmp_path / "new", {**TIMES, "eager": 0.8})
    (hint,) = [line for line in printed("compare", base, new, status=1).splitlines() if line.startswith("hint: ")]
    assert all(words in hint for words in ("6 of 6", "3 implementations", "slower", "eager"))
    other = hint.partition("--baseline ")[2].split()[0]
    rebased = printed("compare", base, new, "--baseline", other)
    assert f"{other} in place of eager" in rebased
    assert "hint: " not in rebased
    assert rebased.splitlines()[-1] == "2 faster, 4 equivalent, 2 baseline"


def test_another_baseline_reads_the_good_lines_of_a_journal(base: Path, tmp_path: Path, capsys: Capture) -> None:
    """A line that is no record is named on stderr, with its number, and changes neither the output nor the file.

    The rows name the baseline, and results.csv stands for its folder.
    """
    run = shutil.copytree(base, tmp_path / "run")
    command = ["compare", str(run), str(run / table.RESULTS), "--baseline", "sdpa", "--format", "csv"]
    assert main(command) == 0
    good = capsys.readouterr().out
    assert ",sdpa,equivalent,vit,eager," in good
    path = run / journal.JOURNAL
    path.write_bytes(b"rubbish\n" + path.read_bytes())
    before = path.read_bytes()
    assert main(command) == 0
    output = capsys.readouterr()
    assert output.out == good
    assert f"warning: {path}: line 1 is no record" in output.err
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["copy.csv", "results.csv"])
def test_another_baseline_without_a_journal_is_refused(base: Path, tmp_path: Path, name: str, refused: Refused) -> None:
    """A table alone has no rounds to pair anew in, also where some other run's journal lies beside it."""
    path = (shutil.copytree(base, tmp_path / "run") if name == "copy.csv" else tmp_path) / name
    path.write_bytes((base / table.RESULTS).read_bytes())
    line = refused("compare", base, path, "--baseline", "sdpa")
    assert "--baseline needs the journal.jsonl" in line
    assert str(path) in line


def test_only_what_both_runs_measured_can_be_the_baseline(base: Path, tmp_path: Path, refused: Refused) -> None:
    """Others are refused with what could be, and so is the control."""
    new = folder(tmp_path / "new", {"eager": 1.0, "sdpa": 0.5}, failing="mha")
    assert refused("compare", base, new, "--baseline", "mha").endswith("'mha'; expected one of eager, sdpa")
    controlled = folder(tmp_path / "controlled", {**TIMES, CONTROL: 1.0})
    line = refused("compare", controlled, controlled, "--baseline", CONTROL)
    assert f"expected one of {', '.join(TIMES)}" in line


# its forms


@pytest.mark.parametrize("form", FORMS)
def test_a_file_holds_what_is_printed(base: Path, slower: Path, tmp_path: Path, form: str, printed: Printed) -> None:
    """With --to what comes first is printed alone, and the exit status is the same; beside it a picture is drawn."""
    command = ["compare", base, slower, "--format", form]
    output = printed(*command, status=1)
    picture = ["--plot", tmp_path / "changes.png"] if form == "csv" else []
    (line,) = printed(*command, "--to", tmp_path / "out", *picture, status=1).splitlines()
    assert line.startswith(f"{tmp_path / 'out'}: 2 rows are slower: sdpa N=5 -9")
    written = (tmp_path / "out").read_text(encoding="utf-8")
    assert [line.rstrip() for line in written.splitlines()] == [line.rstrip() for line in output.splitlines()]
    assert not picture or (tmp_path / "changes.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_stamped_where_it_was_forced(base: Path, tmp_path: Path, form: str, capsys: Capture) -> None:
    """On standard output, in a file and in what is said aside; status and verdicts are as ever."""
    other = folder(tmp_path / "other", {**TIMES, "sdpa": 0.55}, failing="mha", cores=8, load_1min=5.0)
    command = ["compare", str(base), str(other), "--force", "--format", form]
    assert main(command) == 1
    printed = capsys.readouterr()
    assert main([*command, "--to", str(tmp_path / "out")]) == 1
    aside = capsys.readouterr().out
    for text in (printed.out, printed.err, aside, (tmp_path / "out").read_text(encoding="utf-8")):
        assert [line for line in text.splitlines() if STAMP not in line and not is_markup(line)] == []
    assert "slower" in printed.out
    assert "cores: 2 against 8" in printed.out


def is_markup(line: str) -> bool:
    """Return whether a line says nothing by itself: a title, the frame of a table, the end of a block."""
    return line in ("", "</details>", "]}") or line.startswith(("| ---", "stamp,baseline,"))


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


def test_a_file_that_cannot_be_written_ends_with_2(base: Path, tmp_path: Path, refused: Refused) -> None:
    """The line names the file and the reason."""
    line = refused("compare", base, base, "--to", tmp_path / "no" / "file")
    assert line.endswith("file can't be written: No such file or directory")


@pytest.mark.parametrize(("form", "side"), [*zip(FORMS, ("BASE", "NEW", "BASE", "NEW"), strict=True)])
def test_what_makes_a_comparison_weak_comes_first(
    base: Path, tmp_path: Path, form: str, side: str, capsys: Capture
) -> None:
    """The first lines of every form name the side in which identical code differs, and how few cases are shared.

    What was compared decides the status.
    """
    off = table.load(folder(tmp_path / "off", {**TIMES, CONTROL: 1.1}))
    few = off["num_tokens"].eq(5) & off["implementation"].isin(["eager", "sdpa", CONTROL])
    (other := tmp_path / "few").mkdir()
    table.save(off.assign(batch=off["batch"].where(few, 64)), other)
    sides = [other, base] if side == "BASE" else [base, other]
    assert main(["compare", *map(str, sides), "--format", form]) == 0
    output = capsys.readouterr()
    said = output.err if form == "csv" else output.out
    first, *others = json.loads(said)["summary"] if form == "json" else filter(None, said.splitlines())
    assert said.count("identical code differs") == 1
    assert f"in {side} identical code differs" in first
    assert "share 2 of 14 cases; 6 are in BASE alone and 6 in NEW alone" in " ".join(others[:2])


def test_only_what_changed_is_listed_unless_all_rows_are_asked_for(base: Path, slower: Path, printed: Printed) -> None:
    """Runs that are alike have no warning, and no stamp if forced."""
    short, long = (printed("compare", base, slower, *words, status=1) for words in ([], ["--all"]))
    assert ["\nequivalent " in text for text in (short, long)] == [False, True]
    assert short.splitlines()[-1] == long.splitlines()[-1] == "2 slower, 4 equivalent, 2 baseline"
    alike = printed("compare", base, base, "--force")
    assert ("warning: " in alike, STAMP in alike) == (False, False)


def test_runs_that_were_asked_for_differently_say_so_first(base: Path, tmp_path: Path, printed: Printed) -> None:
    """Sweep and effort stand above the verdicts; the output on runs that were asked for alike begins with those."""
    for name, processes in (("quick", 3), ("full", 10)):
        shutil.copytree(base, tmp_path / name)
        (tmp_path / name / environment.ENVIRONMENT).unlink()
        environment.save(Environment({**IDENTITY}, STATE, {"sweep": name}), tmp_path / name)
        plan.save(Sweep(name, (point(),), ("eager", "sdpa"), effort=Effort(processes=processes)), tmp_path / name)
    first, second, *_ = printed("compare", tmp_path / "quick", tmp_path / "full").splitlines()
    assert all(words in first for words in ("quick against full", "3 against 10"))
    assert "every judged row is equivalent" in second
    assert printed("compare", tmp_path / "quick", tmp_path / "quick").startswith(second)


@pytest.mark.parametrize("options", [[], ["--baseline", "sdpa"]])
def test_a_control_that_is_right_is_no_row_of_a_comparison(
    base: Path, tmp_path: Path, options: list[str], printed: Printed
) -> None:
    """With an older run, which has none, and with another that has one; no other implementation is missed either."""
    new = folder(tmp_path / "new", {**TIMES, CONTROL: 1.0})
    for sides in ([base, new], [new, base], [new, new]):
        text = printed("compare", *sides, *options, "--fail-on", "missing,new,inconclusive,slower")
        assert "identical code" not in text
        assert CONTROL not in text
