"""The end of a run."""

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

from bench.analyse.analysed_run import AnalysedRun
from bench.plan.case import Case
from bench.plan.sweep import Effort, Sweep
from bench.show import summary
from bench.show.answer import points_of
from bench.show.summary import MOST_LINES
from bench.show.terminal.console import rendered
from tests.make.points import vit_s
from tests.make.results import quick, results, timed

PUBLISHED = Path(__file__).parents[2] / "results/published"


def lines(table: pd.DataFrame, width: int = 100, planned: Sweep | None = None) -> list[str]:
    """Return the lines at the end of a run."""
    return rendered(summary.blocks(table, "eager", planned=planned), width=width).splitlines()


@pytest.mark.parametrize("name", ["quick", "quick-xeon-2core", "decode-xeon-2core"])
def test_a_run_of_ten_points_ends_in_at_most_25_lines_of_100_characters(name: str) -> None:
    """It has the answer, a line for each point, failures and doubts; two more points take two more lines."""
    whole = quick() if name == "quick" else AnalysedRun(PUBLISHED / name).whole
    printed = lines(whole)
    assert len(printed) <= 25 + (name == "quick") * 2
    assert max(map(len, printed)) <= 100
    assert printed[0].startswith("Use ")
    assert all(any(line.startswith(f"{at.label} ") for line in printed) for at in points_of(whole))
    assert sum("Use " in line for line in printed) == 1


def test_of_many_points_the_last_are_counted() -> None:
    """The end of a run stays short."""
    many = timed([vit_s(num_tokens=5 + n) for n in range(MOST_LINES + 3)], {"eager": 2.0, "sdpa": 1.0}, 2)
    assert "… and 3 more points" in lines(many)


def test_the_end_says_once_that_times_of_retained_memory_lack_page_faults() -> None:
    """Of points on a GPU, or with the C library's allocator, nothing is said."""
    tables = [timed([vit_s(**at)], {"eager": 2.0}, 2) for at in ({}, {"allocator": "system"}, {"device": "cuda"})]
    assert [sum("page faults" in line for line in lines(table)) for table in tables] == [1, 0, 0]


def test_an_own_kernel_has_a_line_below_each_point_whether_it_wins_or_not() -> None:
    """With its bound, time and ratio; of an only point all implementations have one, and failures have their table."""
    at = [vit_s(num_tokens=tokens) for tokens in (5, 197)]
    table = timed(at, {"eager": 2.0, "sdpa": 1.0, "mine:one": 1.5, "mine:two": 1.6}, 3)
    table.loc[table["implementation"].eq("mine:two"), "status"] = "incorrect"
    own = [line.split() for line in lines(table) if line.strip().startswith("mine:")]
    assert [cells[0] for cells in own] == ["mine:one"] * 2
    assert re.fullmatch(r"mine:one 5\d% 1.5\d* s 1.3\d*x \[.*\] 189 KiB", " ".join(own[0]))
    alone = [line.split()[0] for line in lines(table[table["num_tokens"] == 5]) if line[:1].islower()]
    assert alone[:4] == ["implementation", "sdpa", "mine:one", "eager"]


def test_each_row_of_an_only_point_that_is_undecided_has_one_line() -> None:
    """What isn't decided stands above the table."""
    table = results([Case(vit_s(), name) for name in ("eager", "sdpa")], processes=1)
    assert [line.split()[0] for line in lines(table) if "ms" in line] == ["sdpa", "eager"]


def test_the_last_line_names_the_page_and_the_command_for_all_rows() -> None:
    """A folder with a space is one word of the command."""
    page, command = summary.where(Path("my results"), Path("my results/report.html")).split("   all rows: ")
    assert page == "my results/report.html"
    assert shlex.split(command)[-2:] == ["show", "my results"]
    assert summary.where(Path("results/run"), None).startswith("results/run ")


def test_a_run_with_open_points_names_the_command_that_measures_for_as_long_again() -> None:
    """A race has the given time, equal shares twice their processes; a run whose points are all decided has none."""
    decided = points_of(timed([vit_s()], {"eager": 2.0, "sdpa": 1.0}))
    undecided = points_of(results([Case(vit_s(), name) for name in ("eager", "sdpa")], processes=1))
    race = Effort(race=True, within_s=60)
    assert summary.go_on("bench run", race, decided, 119.2) == []
    assert summary.go_on("bench run", race, undecided, 119.2) == ["Continue: bench run --within 120s"]
    shares = Effort(processes=3)
    assert summary.go_on("bench run", shares, undecided, 60) == ["Continue: bench run --extend --processes 6"]
