"""The end of a run in the terminal."""

import dataclasses
import re
from pathlib import Path

import pandas as pd
import pytest

from bench.analyse.precision import changes
from bench.analyse.summary import summarise
from bench.show.answer import points_of, warnings
from bench.show.terminal.console import on_one_line
from bench.show.terminal.summary import FEW, MOST_LINES, log_line, point_line, summary, widths
from bench.store.saved_run import SavedRun
from tests.analyse.test_precision import measured
from tests.examples import point
from tests.show.example_results import quick, timed

ROOT = Path(__file__).parents[3]


def lines(table: pd.DataFrame, width: int = 80) -> list[str]:
    """Return the lines at the end of a run."""
    page = Path("results/run/report.html")
    return [on_one_line(text) for text in summary(table, "eager", page.parent, page, width)]


def test_quick_ends_in_thirty_lines_of_eighty_characters() -> None:
    """The answer, a line for each of its points, what failed, whether the machine was quiet, and the page."""
    found = lines(quick())
    assert len(found) <= 30
    assert max(map(len, found)) <= 80
    assert found[0].startswith("Use ")
    labels = [at.label for at in points_of(quick())]
    assert [next(line for line in found if line.startswith(label)) for label in labels]
    text = " ".join(found)
    assert "2 of 84 cases (12 points × 7 implementations) have no time" in text
    assert "The machine was quiet" in text
    assert "The page: results/run/report.html" in found


def test_a_real_run_ends_in_some_thirty_lines() -> None:
    """The published one has rows with warnings; a warning about few cases stands on the page alone."""
    table = SavedRun(ROOT / "results/published/quick-xeon-2core").whole
    found = lines(table, 100)
    assert len(found) <= 32
    kinds = {each.flag.letter: each for each in warnings(table)}
    told = " ".join(found)
    assert kinds["U"].rows < FEW * kinds["U"].of
    assert kinds["U"].flag.meaning not in told


def test_a_change_of_precision_is_told() -> None:
    """A run in two precisions ends with what the second one brings and costs; it took half the time here."""
    records = [measured("eager", dtype, process) for dtype in ("float32", "bfloat16") for process in range(3)]
    table = summarise(records, "eager")
    page = Path("results/run/report.html")
    text = " ".join(str(each) for each in summary(table, "eager", page.parent, page, 80, changes=changes(records)))
    assert "bfloat16 instead of float32: eager is 2.00x" in text


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_a_line_of_a_point_fits(width: int) -> None:
    """Its speed-up is whole in any width, and its interval if there is room for it; what to use is named."""
    found = points_of(quick())
    columns = widths([at.label for at in found], width)
    for at in found:
        line = point_line(at, "eager", columns).plain
        assert len(line) <= width
        assert line.rstrip().endswith(("]" if width >= 100 else "x", "baseline"))
        assert at.choice.name in line


def test_many_points_are_counted() -> None:
    """The table has them all."""
    table = timed([point(num_tokens=5 + n) for n in range(MOST_LINES + 3)], {"eager": 2.0, "sdpa": 1.0}, 2)
    assert "… and 3 more points" in lines(table)


def test_a_line_of_a_log_is_short_and_says_what_a_reader_needs() -> None:
    """Position, point, what to use, what that can cost, and the time left."""
    for number, at in enumerate(points_of(quick()), start=1):
        line = log_line(at, number, 12, "4m10s", "eager", 118)
        assert line.startswith(f"[{number:>2}/12] {at.label}: ")
        assert line.endswith("(~4m10s left)")
        assert len(line) <= 118


def test_a_long_name_of_a_point_does_not_push_the_time_left_out_of_a_line() -> None:
    """The name is cut."""
    (at,) = points_of(timed([point()], {"eager": 2.0, "sdpa": 1.0}, 2))
    label = "patch N=196 C=768→384 H=6 with qkv bias images 224×224 patches 16×16 and more"
    line = log_line(dataclasses.replace(at, label=label), 7, 9, "4m10s", "eager", 118)
    assert line.startswith("[7/9] patch N=196 C=768→384")
    assert line.endswith("(~4m10s left)")
    assert re.search(r"fastest: sdpa, 2\.\d\dx \[", line)
    assert len(line) <= 118
