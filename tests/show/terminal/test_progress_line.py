"""The line of a point."""

import pandas as pd
import pytest

from bench.plan.case import Case
from bench.show.terminal.progress_line import point_line
from tests.examples import point
from tests.show.example_results import Fate, results

CASES = [Case(point(), name) for name in ("eager", "manual", "sdpa", "mha")]


def rows(fates: dict[Case, Fate] | None = None) -> pd.DataFrame:
    """Return the rows of one point."""
    return results(CASES, fates)


def test_a_point_ends_as_one_line_that_says_everything() -> None:
    """Position, time left, the point, what to use, and each implementation's time and ratio, in their order."""
    line = point_line(3, 12, 130, rows(), "eager")
    assert line.startswith(
        "[ 3/12]  ~2m10s left vit float32 inference B=8 N=197 C=384 H=6 1 thread | fastest: sdpa, by "
    )
    times = line.split(" | ")[2:]
    assert [time.split()[0] for time in times] == ["sdpa", "mha", "eager", "manual"]
    assert times[0].endswith("x")
    assert times[2].endswith("ms baseline")
    assert point_line(1, 2, None, rows(), "eager", varying={"num_tokens"}).startswith("[1/2] N=197 | ")


@pytest.mark.parametrize(
    ("fates", "words"),
    [
        ({CASES[1]: ("oom", "")}, "ms baseline | manual oom"),
        ({CASES[0]: ("timeout", "")}, "ms | eager timeout"),
        (dict.fromkeys(CASES, ("crashed", "")), "nothing was measured | eager crashed"),
    ],
    ids=["one", "the baseline", "all"],
)
def test_failures_stand_at_the_end_of_the_line(fates: dict[Case, Fate], words: str) -> None:
    """Named with how they ended; ratios that don't exist are left out."""
    assert words in point_line(1, 1, 0, rows(fates), "eager")


@pytest.mark.parametrize("colour", [False, True])
def test_it_stays_one_line_however_long(colour: bool) -> None:
    """Sixty implementations and a detail of several lines make no second line."""
    cases = [Case(point(), f"package.module:kernel{number}") for number in range(60)]
    table = results([CASES[0], *cases], {cases[0]: ("error", "first\nsecond")})
    line = point_line(1, 1, None, table, "eager", colour=colour)
    assert "\n" not in line
    assert "kernel59" in line


def test_colour_is_there_only_where_it_is_wanted() -> None:
    """A file gets no ANSI codes; a terminal gets the same words with them."""
    fates: dict[Case, Fate] = {CASES[1]: ("oom", "")}
    plain, coloured = (point_line(1, 1, 9, rows(fates), "eager", colour=colour) for colour in (False, True))
    assert "\x1b" not in plain
    assert "\x1b[31mmanual oom" in coloured
