"""The end of a run."""

import shlex
from pathlib import Path

import pandas as pd
import pytest

from bench.analyse.conclusions import CoreChoice, changes
from bench.analyse.summary import summarise
from bench.cli import main
from bench.plan.case import Case
from bench.show import summary
from bench.show.answer import points_of, warnings
from bench.show.summary import FEW, MOST_LINES, closing
from bench.show.terminal.blocks import render
from bench.show.terminal.console import rendered
from bench.stats.estimates import Interval
from bench.store import table
from bench.store.saved_run import SavedRun
from tests import examples
from tests.examples import point
from tests.runs import in_precision as measured
from tests.show.example_results import Fate, quick, results, timed

ROOT = Path(__file__).parents[2]


def lines(table: pd.DataFrame, width: int = 80) -> list[str]:
    """Return the lines at the end of a run."""
    return rendered(render(summary.blocks(table, "eager")), width=width).splitlines()


def test_quick_ends_in_thirty_lines_of_eighty_characters() -> None:
    """The answer, a line for each of its points, what failed, whether the machine was quiet, and where the page is."""
    found = lines(quick())
    where = summary.where(Path("results/run"), Path("results/run/report.html"))
    assert len(found) + len(where) <= 30
    assert max(map(len, found)) <= 80
    assert found[0].startswith("Use ")
    labels = [at.label for at in points_of(quick())]
    assert [next(line for line in found if line.startswith(label)) for label in labels]
    text = " ".join(found)
    assert "2 of 84 cases (12 points × 7 implementations) have no time" in text
    assert "The machine was quiet" in text
    assert where[0] == "The page: results/run/report.html"
    assert summary.where(Path("results/run"), None)[0] == "Everything is in results/run"


def test_a_real_run_ends_in_some_thirty_lines() -> None:
    """The published one has rows with warnings; a warning about few cases stands on the page alone."""
    table = SavedRun(ROOT / "results/published/quick-xeon-2core").whole
    found = lines(table, 100)
    assert len(found) <= 30
    kinds = {each.flag.letter: each for each in warnings(table)}
    assert kinds["U"].rows < FEW * kinds["U"].of
    assert kinds["U"].flag.meaning not in " ".join(found)


def test_why_cases_failed_is_a_line_for_each_reason() -> None:
    """Implementations that failed alike share it; of four reasons one is counted."""
    at = [point(num_tokens=5), point(num_tokens=7)]
    cases = [Case(each, name) for each in at for name in ("eager", "sdpa", "mha", "flex", "online", "manual")]
    fates: dict[Case, Fate] = {each: ("oom", "80 GiB") for each in cases if each.implementation in ("sdpa", "mha")}
    fates |= {Case(at[0], name): ("error", name) for name in ("flex", "online", "manual")}
    found = lines(results(cases, fates), 120)
    assert "  sdpa, mha oom: 80 GiB (at 2 points)" in found
    assert "  flex error: flex" in found
    assert "  and 1 other reason" in found


def test_many_points_are_counted() -> None:
    """The table has them all."""
    table = timed([point(num_tokens=5 + n) for n in range(MOST_LINES + 3)], {"eager": 2.0, "sdpa": 1.0}, 2)
    assert "… and 3 more points" in lines(table)


LONG = [Case(point(num_tokens=number), name) for number in (50, 197) for name in ("eager", "sdpa")]
FAILED: Fate = ("oom", "no memory")


def commands(lines: list[str]) -> list[str]:
    """Return the arguments of the command that the last lines of a run name, none if they name none."""
    found = [shlex.split(line)[-2:] for line in lines if "python -m bench" in line]
    assert len(found) <= 1
    return found[0] if found else []


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
    assert main(commands(closing(made, run, []))) == 0


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
    assert not commands(closing(made, tmp_path, []))
    table.save(made, tmp_path)
    assert main(["scaling", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / "plots").exists()


def test_several_precisions_of_a_shape_are_pointed_out() -> None:
    """A line says what the narrower one brings, and a command compares them; else there is neither."""
    records = [measured("sdpa", dtype, process) for dtype in ("float32", "bfloat16") for process in range(3)]
    made = summarise(records, "eager")
    lines = closing(made, Path("run"), [], changes(records))
    assert any("bfloat16 instead of float32: sdpa is 2.00x" in line for line in lines)
    assert any("show --across dtype run" in line for line in lines)
    assert not any("float32" in line for line in closing(made, Path("run"), [], ()))
    end = rendered(render(summary.blocks(made, "eager", changes(records))), width=200)
    assert "bfloat16 instead of float32: sdpa is 2.00x" in end


def test_choices_that_bring_something_are_exported_by_a_command() -> None:
    """From 3 % on, which the intervals must show; a run's folder may need quotes."""
    of = [CoreChoice(examples.point(), "eager", 1.0, Interval(1.2, low, 1.4)) for low in (1.04, 1.02)]
    (line,) = summary.for_programs(of, Path("my run"))
    assert "at least 4% faster than sdpa" in line
    assert line.endswith("bench export 'my run'")
    assert summary.for_programs(of[1:], Path("run")) == []
