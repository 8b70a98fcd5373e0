"""The command that writes which core to use at each point."""

import json
import runpy
from collections.abc import Callable
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]  # it has no types
import pytest

from bench.plan.case import Case
from impls.table import load, nearest
from tests.make.points import vit_s
from tests.make.records import ORIGIN, environment, measured
from tests.make.runs import saved

Printed = Callable[..., str]

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "table.schema.json").read_text())


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a run at which sdpa is the fastest core with few tokens and eager with many; the user stands beside it."""
    monkeypatch.chdir(tmp_path)
    seconds = {("eager", 64): 2.0, ("sdpa", 64): 1.0, ("eager", 512): 1.0, ("sdpa", 512): 1.5, ("mha", 512): 0.5}
    records = [
        measured(Case(vit_s(num_tokens=tokens), name), process, value_s)
        for tokens in (64, 512)
        for process in range(5)
        for (name, of), value_s in seconds.items()
        if of == tokens
    ]
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
