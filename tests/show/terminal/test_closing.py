"""The last lines of a run."""

import shlex
from pathlib import Path

import pytest

from bench.analyse.precision import changes
from bench.analyse.summary import summarise
from bench.cli import main
from bench.plan.case import Case
from bench.show.terminal.closing import closing
from bench.store import table
from tests.analyse.test_precision import measured
from tests.examples import point
from tests.show.example_results import Fate, results

LONG = [Case(point(num_tokens=number), name) for number in (50, 197) for name in ("eager", "sdpa")]
FAILED: Fate = ("oom", "no memory")


def advised(lines: list[str]) -> list[str]:
    """Return the arguments of the command that the last lines of a run name, none if they name none."""
    commands = [shlex.split(line)[-2:] for line in lines if "python -m bench" in line]
    assert len(commands) <= 1
    return commands[0] if commands else []


def test_pictures_are_counted_and_not_their_files() -> None:
    """A PNG and an SVG are one picture, and a run without pictures doesn't mention any."""
    files = [Path(f"{name}.{kind}") for name in ("latency", "memory") for kind in ("png", "svg")]
    made = results(LONG)
    assert closing(made, Path("run"), files)[0].endswith(", 2 pictures.")
    assert closing(made, Path("run"), files[:2])[0].endswith(", 1 picture.")
    assert "picture" not in closing(made, Path("run"), [])[0]


@pytest.mark.parametrize("folder", ["plain", "with space", "with 'quote'"])
def test_the_command_that_is_advised_works(folder: str, tmp_path: Path) -> None:
    """Copied into a shell, it fits the run, whatever its folder is called."""
    made, run = results(LONG), tmp_path / folder
    run.mkdir()
    table.save(made, run)
    assert main(advised(closing(made, run, []))) == 0


@pytest.mark.parametrize(
    ("cases", "fates"),
    [
        (LONG[:2], {}),
        (LONG, dict.fromkeys(LONG, FAILED)),
        (LONG, dict.fromkeys([LONG[0], LONG[3]], FAILED)),
        ([Case(point(batch=number), "eager") for number in (1, 2)], {}),
    ],
    ids=["one point", "nothing measured", "one place each", "another column"],
)
def test_nothing_is_advised_if_nothing_can_be_fitted(
    cases: list[Case], fates: dict[Case, Fate], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Then the command says in one line why, with status 2, and draws nothing."""
    made = results(cases, fates)
    assert not advised(closing(made, tmp_path, []))
    table.save(made, tmp_path)
    assert main(["scaling", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / "plots").exists()


def test_several_precisions_of_a_shape_are_pointed_out() -> None:
    """A line says what the narrower one brings, and the command that compares them works; else there is neither."""
    records = [measured("sdpa", dtype, process) for dtype in ("float32", "bfloat16") for process in range(3)]
    made = summarise(records, "eager")
    lines = closing(made, Path("run"), [], changes(records))
    assert any("bfloat16 instead of float32: sdpa is 2.00x" in line for line in lines)
    assert any("show --across dtype run" in line for line in lines)
    assert not any("float32" in line for line in closing(made, Path("run"), [], ()))
