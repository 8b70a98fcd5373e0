"""The command line of a run: what it prints and how it ends."""

import itertools
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.cli import main
from bench.commands import FIRST, NAMES
from bench.plan.case import Case
from bench.store import profile as store
from bench.store import table
from tests import profiles
from tests.examples import measured, saved
from tests.points import point


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run in which sdpa takes half of eager's time at two points."""
    times = {"eager": 1.0, "sdpa": 0.5}
    return saved(
        tmp_path / "run",
        [
            measured(Case(point(num_tokens=tokens), name), process, value)
            for process, tokens in itertools.product(range(6), (5, 7))
            for name, value in times.items()
        ],
    )


def test_the_help_begins_with_what_most_people_need(capsys: pytest.CaptureFixture[str]) -> None:
    """Five commands, then all others, each on a line with what it does."""
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    names = re.findall(r"^  (\w+) +[A-Z]", text, re.MULTILINE)
    assert tuple(names) == NAMES
    assert text.index("doctor") < text.index("all other commands:") < text.index("  list ")
    assert len(FIRST) == 5


def test_list_names_all_that_can_be_asked_for(printed: Callable[..., str]) -> None:
    """Sweeps, layers, implementations with what they refuse, and models with their shapes."""
    output = printed("list")
    for words in ("quick", "article", "vit", "eager", "compiled_sdpa", "train", "retained"):
        assert words in output
    for words in ("mha_weights", "no (1)", "narrower", "t2t_stage_1", "N=577 C=768 H=12"):
        assert words in output


def test_show_prints_every_row_and_what_to_use(run: Path, printed: Callable[..., str]) -> None:
    """A run folder and its results.csv print the same table."""
    output = printed("show", run)
    assert printed("show", run / "results.csv") == output
    assert output.count("fastest: sdpa") == 2
    assert "2.00x" in output


def test_show_reference_without_a_published_case_is_a_wrong_request(run: Path, refused: Callable[..., str]) -> None:
    """A run that nobody published figures for ends with one line and status 2."""
    assert "no published figure" in refused("show", run, "--reference")


def test_ctrl_c_ends_with_a_line(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An interrupted command says that what was measured is kept, without a traceback."""

    def interrupted(_path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(table, "load", interrupted)
    assert main(["show", str(run)]) == 130
    assert capsys.readouterr().err == "attention-bench: interrupted; what was measured is kept\n"


def test_plot_draws_from_the_csv_alone(run: Path, tmp_path: Path, printed: Callable[..., str]) -> None:
    """Pictures come from results.csv, into the folder asked for or beside the results."""
    alone = tmp_path / "alone.csv"
    shutil.copy(run / "results.csv", alone)
    assert "latency-tokens" in printed("plot", alone, "--to", tmp_path / "there") + printed("plot", run)
    drawn = {path.name for path in (tmp_path / "there").iterdir()}
    assert drawn == {path.name for path in (run / "plots").iterdir()}
    assert {name.partition("-")[0] for name in drawn} == {"latency", "speedup", "memory", "scaling"}


@pytest.mark.parametrize("command", ["plot", "scaling"])
def test_a_folder_that_takes_no_pictures_is_named(run: Path, command: str, refused: Callable[..., str]) -> None:
    """In one line, without a traceback."""
    (run / "plots").write_text("a file in its place")
    assert refused(command, run) == f"attention-bench: {run / 'plots'}: File exists"


def test_plot_draws_the_stages_of_a_run_that_was_profiled(run: Path, printed: Callable[..., str]) -> None:
    """Whatever the run folder holds is drawn."""
    (run / store.TRACES).mkdir()
    store.save(profiles.stepwise(), run)
    printed("plot", run)
    assert {"latency", "stages"} <= {path.name.partition("-")[0] for path in (run / "plots").iterdir()}


def test_scaling_prints_fits_and_draws_them(run: Path, tmp_path: Path, printed: Callable[..., str]) -> None:
    """Exponents come from results.csv alone, pictures go into the folder asked for or beside the results."""
    alone = tmp_path / "alone.csv"
    shutil.copy(run / "results.csv", alone)
    output = printed("scaling", alone, "--to", tmp_path / "there") + printed("scaling", run)
    assert output.count("latency exponent 5 to 7") == 2
    assert output.count("at N: 5 to 7 sdpa") == 2
    drawn = {path.name for path in (tmp_path / "there").iterdir()}
    assert drawn == {path.name for path in (run / "plots").iterdir()}
    assert all(name in output and name.startswith("scaling-tokens") for name in drawn)


def test_scaling_of_a_single_point_ends_with_2_and_one_line(run: Path, refused: Callable[..., str]) -> None:
    """A run without a series is a wrong request, and leaves no picture behind."""
    path = run / "results.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line for line in lines if ",7,12,12," not in line) + "\n")
    line = refused("scaling", run)
    assert all(words in line for words in ("one point", "num_tokens, num_heads or channels", "two values"))
    assert not (run / "plots").exists()


@pytest.mark.parametrize("command", ["show", "plot", "scaling", "profile"])
@pytest.mark.parametrize("content", [None, "", "a,b\n1,2\n", "schema_version\n", "schema_version\n99\n"])
def test_what_is_no_result_ends_with_2_and_one_line(
    command: str, content: str | None, tmp_path: Path, refused: Callable[..., str]
) -> None:
    """A missing, an empty and a foreign file, and one without rows or of a newer suite, are wrong requests."""
    path = tmp_path / "results.csv"
    if content is not None:
        path.write_text(content)
    assert "results.csv" in refused(command, path)
