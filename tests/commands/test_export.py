"""The command that writes which core to use at each point."""

import json
import runpy
from collections.abc import Callable
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]  # it has no types
import pytest

from bench.commands import duel
from bench.engine.duel import Duel
from bench.machine import facts
from bench.plan.case import Case
from bench.plan.sweep import Effort, Sweep
from bench.store import environment as environments
from bench.store import plan
from bench.store.saved_run import SavedRun
from impls.table import load, nearest
from tests.clock import Clock
from tests.make.points import vit_s
from tests.make.records import ORIGIN, environment, measured, timed
from tests.make.runs import saved

Printed = Callable[..., str]

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "table.schema.json").read_text())


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a run at which sdpa is the fastest core with few tokens and eager with many; the user stands beside it."""
    monkeypatch.chdir(tmp_path)
    seconds = {64: {"eager": 2.0, "sdpa": 1.0}, 512: {"eager": 1.0, "sdpa": 1.5, "mha": 0.5}}
    records = [each for tokens, of in seconds.items() for each in timed([vit_s(num_tokens=tokens)], of)]
    return saved(tmp_path / "run", records, environment())


def test_a_table_keeps_its_schema_and_can_be_read(run: Path, printed: Printed) -> None:
    """The table names the run, what was measured with, and a core for each point."""
    assert "attention.json: 2 points with 1 thread, at 1 of them another core than sdpa" in printed("export", run)
    content = json.loads(Path("attention.json").read_text())
    jsonschema.validate(content, SCHEMA)
    assert (content["run"], content["measured_at"]) == ("run", ORIGIN.started_at)
    few, many = content["points"]
    assert (few["num_tokens"], few["implementation"], few["head_width"]) == (64, "sdpa", 64)
    assert (many["num_tokens"], many["implementation"]) == (512, "eager")
    assert many["speedup"] == pytest.approx(1.5, rel=0.01)
    assert [name for *_, name in load("attention.json").choices] == ["sdpa", "eager"]


def test_a_function_says_the_same_without_the_suite(run: Path, printed: Printed) -> None:
    """The function imports math alone, and chooses as the table does at measured shapes, between and far from them."""
    printed("export", run, "table.json")
    printed("export", run, "choose.py", "--format", "python")
    text = Path("choose.py").read_text()
    assert [line for line in text.splitlines() if "import" in line] == ["import math"]
    core = runpy.run_path("choose.py")["core"]
    choices, kind = load("table.json").choices, ("cpu", "float32", False, "none")
    shapes = [(tokens, 64, 48) for tokens in (31, 32, 64, 181, 182, 512, 1024, 1025)]
    cores = [core(*kind, *shape) for shape in shapes]
    assert cores == [nearest(choices, kind, shape) for shape in shapes]
    assert {*cores} == {"sdpa", "eager"}


def test_a_table_of_a_gpu_names_the_gpu_and_no_threads(tmp_path: Path, printed: Printed) -> None:
    """The processor is named only if points ran on it."""
    on_gpu = vit_s(device="cuda", timing="device-cold", threads=15)
    records = timed([on_gpu], {"eager": 1.0, "sdpa": 2.0})
    run = saved(tmp_path / "run", records, environment(gpus={"cuda:0": "H200 140 GiB"}))
    out = tmp_path / "choose.py"
    text = printed("export", run, out, "--format", "python")
    first = out.read_text().splitlines()[0]
    assert "on H200 140 GiB, torch 2.13.0" in first
    assert not any("thread" in words or "A CPU" in words for words in (text, first))


def test_points_that_a_table_does_not_know_are_left_out(tmp_path: Path, printed: Printed, refused: Printed) -> None:
    """A line says how many and why; with nothing else there is no table."""
    points = [vit_s(), vit_s(attn_bias="relative"), vit_s(mask="padding"), vit_s(mask="padding", batch=4)]
    seconds = {"eager": 1.0, "sdpa": 2.0}
    records = [
        measured(Case(at, name), process, value_s)
        for at in points
        for process in range(5)
        for name, value_s in seconds.items()
    ]
    run = saved(tmp_path / "run", records, environment())
    text = printed("export", run, tmp_path / "out.json")
    assert "left out: 3 points with a bias or padding" in text
    content = json.loads((tmp_path / "out.json").read_text())
    jsonschema.validate(content, SCHEMA)
    assert [(each["mask"], each["implementation"]) for each in content["points"]] == [("none", "eager")]
    alone = saved(tmp_path / "alone", [each for each in records if each.case.point.mask == "padding"], environment())
    assert "left out: 2 points with padding" in refused("export", alone, tmp_path / "none.json")


def test_a_run_without_another_core_is_refused(tmp_path: Path, refused: Printed) -> None:
    """The line says what must be measured; nothing is written."""
    records = [measured(Case(vit_s(), name), process, 1.0) for process in range(3) for name in ("mha", "sdpa")]
    run = saved(tmp_path / "run", records, environment())
    line = refused("export", run, tmp_path / "out.json")
    assert "no point at which sdpa was measured beside another core, such as eager" in line
    assert not (tmp_path / "out.json").exists()


def test_a_file_that_cannot_be_written_is_said_in_one_line(run: Path, refused: Printed) -> None:
    """The line names what is wrong: the file's folder isn't there."""
    assert "can't be written: No such file or directory" in refused("export", run, "no/such/folder.json")


def raced(run: Path, within_s: float) -> Path:
    """Make a run one of this machine, and a race that took some of its time."""
    here = facts.observe({"torch": "2.0", "gpus": {}}, {}, {})
    (run / environments.ENVIRONMENT).unlink()
    environments.save(here, run)
    points = tuple(vit_s(num_tokens=tokens) for tokens in (64, 512))
    plan.save(Sweep("mine", points, ("eager", "sdpa"), effort=Effort(race=True, within_s=within_s)), run)
    return run


def test_a_check_measures_a_program_that_follows_the_table(
    run: Path, scripted_workers: Clock, printed: Printed
) -> None:
    """At shapes between the points, beside sdpa; the table carries the verdicts on it."""
    text = printed("export", raced(run, 100), "table.json", "--check", 3)
    content = json.loads(Path("table.json").read_text())
    jsonschema.validate(content, SCHEMA)
    assert content["check"]["shapes"] == 3
    assert sum(content["check"]["verdicts"].values()) == 3
    folder = Path("results", content["check"]["run"])
    assert str(folder) in text
    table = SavedRun(folder).table
    assert {*table["implementation"]} == {"sdpa", "measured[table=table.json]"}
    assert table["num_tokens"].between(64, 512).all()
    assert "measured[table=table.json] is " in text
    assert load("table.json").checked.startswith("the table, checked at 3 shapes beside sdpa: ")


def test_a_check_takes_the_time_that_its_race_has_left(
    run: Path, scripted_workers: Clock, refused: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With none left a line says so, and `--within` gives some; the table is not written for nothing."""
    line = refused("export", raced(run, 10), "table.json", "--check", 3)
    assert "the time that the race of" in line
    assert "--within 3m gives it time" in line
    assert not Path("table.json").exists()
    asked: list[float | None] = []

    def noted(race: Duel) -> float:
        asked.append(race.sweep.effort.within_s)
        return 0.0

    monkeypatch.setattr(duel, "measure", noted)
    assert "nothing was measured" in refused("export", run, "table.json", "--check", 1, "--within", "2m")
    assert asked == [120.0]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--check", "0"], "--check 0 must be a whole number of at least 1"),
        (["--within", "2m"], "--within needs --check N"),
        (["--check", "2", "--format", "python"], "--check needs --format json"),
        (["--check", "2", "--within", "soon"], "--within soon must be a duration"),
    ],
)
def test_a_check_that_cannot_be_asked_for(words: list[str], reason: str, run: Path, refused: Printed) -> None:
    """One line says the rule, and no table is written."""
    assert reason in refused("export", run, "table.json", *words)
    assert not Path("table.json").exists()


def test_a_run_of_one_point_has_no_shapes_between(tmp_path: Path, refused: Printed) -> None:
    """The line says in what its points must differ."""
    records = [measured(Case(vit_s(), name), process, 1.0) for process in range(3) for name in ("eager", "sdpa")]
    run = saved(tmp_path / "run", records, environment())
    line = refused("export", run, tmp_path / "table.json", "--check", 2, "--within", "1m")
    assert "its 1 point of a table must differ in batch, tokens, heads or channels" in line


def test_a_table_of_another_machine_is_written_and_not_checked(
    run: Path, scripted_workers: Clock, refused: Printed
) -> None:
    """The line says what differs, and the status is that of results that are not comparable."""
    line = refused("export", run, "table.json", "--check", 2, "--within", "1m", status=3)
    assert "this is another machine: " in line
    assert "check" not in json.loads(Path("table.json").read_text())
