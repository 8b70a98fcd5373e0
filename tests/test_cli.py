"""The command line of a run: what it prints and how it ends."""

import dataclasses
import shutil
from pathlib import Path

import pytest

from bench.analyse.summary import summarise
from bench.cli import main
from bench.plan.case import Case
from bench.store import profile as store
from bench.store import table
from bench.store.record import Origin, Record, Slots
from tests import profiles
from tests.points import point

ORIGIN = Origin("env", "a processor", "2.13.0", "abc", "2026-01-01T00:00:00+00:00")
PROCESSES = 10


def folder(path: Path, sdpa_s: float, env_id: str = "env") -> Path:
    """Write a run in which eager takes a second and sdpa as long as given, give or take a tenth of a percent."""
    records = []
    for process in range(PROCESSES):
        for tokens in (5, 7):
            for name, value in {"eager": 1.0, "sdpa": sdpa_s * (1 + process % 3 * 1e-3)}.items():
                slots = Slots((0, 1), ((value,), (value,)), (0, 0), (0, 0))
                origin = dataclasses.replace(ORIGIN, env_id=env_id)
                case = Case(point(num_tokens=tokens), name)
                records.append(
                    Record(
                        case,
                        process,
                        "ok",
                        origin,
                        slots=slots,
                        metrics={"calls_per_timing": 1, "settled": True, "peak_bytes": 1024},
                    )
                )
    path.mkdir()
    table.save(summarise(records, "eager"), path)
    return path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run in which sdpa takes half a second."""
    return folder(tmp_path / "base", 0.5)


def test_list_names_sweeps_layers_and_implementations(capsys: pytest.CaptureFixture[str]) -> None:
    """What can be asked for is there by name."""
    assert main(["list"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in ("quick", "article", "vit", "eager", "compiled_sdpa", "train", "retained"))


def test_show_prints_every_row_and_the_winner(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run folder and its results.csv print the same table."""
    assert main(["show", str(run)]) == 0
    by_folder = capsys.readouterr().out
    assert main(["show", str(run / "results.csv")]) == 0
    assert capsys.readouterr().out == by_folder
    assert by_folder.count("winner: sdpa") == 2
    assert "2.00x" in by_folder


def test_list_says_what_holds_and_names_models(capsys: pytest.CaptureFixture[str]) -> None:
    """The table of layers and implementations comes with its reasons, and each model with its shape."""
    assert main(["list"]) == 0
    said = capsys.readouterr().out
    assert all(words in said for words in ("mha_weights", "no (1)", "narrower", "t2t_stage_1", "N=577 C=768 H=12"))


def test_show_reference_without_a_published_case_is_a_wrong_request(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that nobody published figures for ends with one line and status 2."""
    assert main(["show", str(run), "--reference"]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_ctrl_c_ends_with_a_line(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An interrupted command says that what was measured is kept, without a traceback."""

    def interrupted(_path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(table, "load", interrupted)
    assert main(["show", str(run)]) == 130
    assert capsys.readouterr().err == "attention-bench: interrupted; what was measured is kept\n"


def test_plot_draws_from_the_csv_alone(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pictures come from results.csv, into the folder asked for or beside the results."""
    alone = tmp_path / "alone.csv"
    shutil.copy(run / "results.csv", alone)
    assert main(["plot", str(alone), "--to", str(tmp_path / "there")]) == 0
    assert main(["plot", str(run)]) == 0
    drawn = {path.name for path in (tmp_path / "there").iterdir()}
    assert drawn == {path.name for path in (run / "plots").iterdir()}
    assert {name.partition("-")[0] for name in drawn} == {"latency", "speedup", "memory", "scaling"}
    assert "latency-tokens" in capsys.readouterr().out


def test_plot_draws_the_stages_of_a_run_that_was_profiled(run: Path) -> None:
    """Whatever the run folder holds is drawn."""
    (run / store.TRACES).mkdir()
    store.save(profiles.stepwise(), run)
    assert main(["plot", str(run)]) == 0
    assert {"latency", "stages"} <= {path.name.partition("-")[0] for path in (run / "plots").iterdir()}


def test_a_table_without_the_name_of_its_baseline_is_compared_with_a_warning(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The baseline is not guessed from ratios of 1; the reader of the comparison is told."""
    unnamed = tmp_path / "unnamed.csv"
    table.load(run).assign(baseline=None).to_csv(unnamed, index=False)
    assert main(["compare", str(unnamed), str(run)]) == 0
    assert "baseline of BASE is not known" in capsys.readouterr().out
    assert main(["compare", str(run), str(run)]) == 0
    assert "is not known" not in capsys.readouterr().out


def test_scaling_prints_fits_and_draws_them(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exponents come from results.csv alone, pictures go into the folder asked for or beside the results."""
    alone = tmp_path / "alone.csv"
    shutil.copy(run / "results.csv", alone)
    assert main(["scaling", str(alone), "--to", str(tmp_path / "there")]) == 0
    assert main(["scaling", str(run)]) == 0
    said = capsys.readouterr().out
    assert said.count("latency exponent 5 to 7") == 2
    assert said.count("fastest at N: 5 to 7 sdpa") == 2
    drawn = {path.name for path in (tmp_path / "there").iterdir()}
    assert drawn == {path.name for path in (run / "plots").iterdir()}
    assert all(name in said and name.startswith("scaling-tokens") for name in drawn)


def test_scaling_of_a_single_point_ends_with_2_and_one_line(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run without a series is a wrong request, and leaves no picture behind."""
    path = run / "results.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line for line in lines if ",7,12,12," not in line) + "\n")
    assert main(["scaling", str(run)]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert all(words in said[0] for words in ("one point", "num_tokens, num_heads or channels", "two values"))
    assert not (run / "plots").exists()


def test_compare_ends_with_1_when_something_got_slower(run: Path, tmp_path: Path) -> None:
    """Ten percent slower is a regression, ten percent faster and the same run are not."""
    slower, faster = folder(tmp_path / "slower", 0.55), folder(tmp_path / "faster", 0.45)
    assert main(["compare", str(run), str(slower)]) == 1
    assert main(["compare", str(run), str(faster)]) == 0
    assert main(["compare", str(run), str(run)]) == 0


def test_results_of_two_machines_end_with_3(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was measured under other conditions is not compared."""
    other = folder(tmp_path / "other", 0.5, env_id="another")
    assert main(["compare", str(run), str(other)]) == 3
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


@pytest.mark.parametrize("command", ["show", "plot", "scaling", "profile"])
@pytest.mark.parametrize("content", [None, "", "a,b\n1,2\n", "schema_version\n"])
def test_what_is_no_result_ends_with_2_and_one_line(
    command: str, content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing, an empty and a foreign file, and one without rows, are wrong requests."""
    path = tmp_path / "results.csv"
    if content is not None:
        path.write_text(content)
    assert main([command, str(path)]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert "results.csv" in said[0]


def test_results_of_a_newer_suite_end_with_2(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A schema that this suite doesn't know is said to be newer, with both numbers."""
    path = run / "results.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], *(line.rpartition(",")[0] + ",99" for line in lines[1:])]) + "\n")
    assert main(["show", str(run)]) == 2
    assert "schema_version 99" in capsys.readouterr().err
