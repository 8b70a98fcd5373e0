"""Who wins over two axes at once."""

import pandas as pd
import pytest

from bench.analyse.fastest import ALONE, NOTHING, WITHOUT_INTERVALS
from bench.analyse.ranking import TIE, WINNER
from bench.analyse.scaling.series import CHANNELS, HEADS
from bench.analyse.summary import summarise
from bench.plan.case import Case, Point
from bench.plan.sweep import load_sweep
from bench.show.winners import maps
from tests.examples import point
from tests.show.made import Fate, quick, record, results

GRID = [point(num_tokens=tokens, num_heads=heads) for tokens in (50, 197) for heads in (3, 6)]


def led(seconds: dict[str, float], at: list[Point] = GRID, processes: int = 3) -> pd.DataFrame:
    """Return results in which each implementation takes so long at every point."""
    made = [
        record(Case(each, name), process, None, value)
        for each in at
        for name, value in seconds.items()
        for process in range(processes)
    ]
    return summarise(made, "eager")


def test_a_winner_is_named_with_its_relative_time_the_next() -> None:
    """Twice as fast as sdpa, not as eager, with the interval of the ratio of both."""
    (found,) = maps(led({"eager": 0.04, "sdpa": 0.02, "online": 0.01}))
    assert len(found.cells) == 4
    cell = found.cells[50, 3]
    assert (cell.says, cell.names, cell.runner_up) == (WINNER, ("online",), "sdpa")
    assert cell.relative is not None
    assert cell.relative.low < 2 < cell.relative.high
    assert cell.relative.high / cell.relative.low < 1.1


def test_a_tie_names_all_who_tie() -> None:
    """Those that are shown to be within 2 % of each other; who is slower isn't among them."""
    (found,) = maps(led({"eager": 0.04, "sdpa": 0.02, "online": 0.02}, processes=10))
    assert {cell.says for cell in found.cells.values()} == {TIE}
    assert all(set(cell.names) == {"sdpa", "online"} for cell in found.cells.values())


def test_one_process_leads_without_having_won() -> None:
    """A time without an interval is a value alone."""
    (found,) = maps(led({"eager": 0.04, "sdpa": 0.02}, processes=1))
    cell = found.cells[50, 6]
    assert cell.says == WITHOUT_INTERVALS
    assert cell.relative is not None
    assert not cell.relative.is_known


@pytest.mark.parametrize(("failing", "says"), [(("sdpa",), ALONE), (("sdpa", "eager"), NOTHING)])
def test_what_has_no_rival_has_no_lead(failing: tuple[str, ...], says: str) -> None:
    """A cell says if one or none was measured."""
    fates: dict[Case, Fate] = {Case(GRID[0], name): ("oom", "") for name in failing}
    (found,) = maps(results([Case(at, name) for at in GRID for name in ("eager", "sdpa")], fates))
    cell = found.cells[50, 3]
    assert (cell.says, cell.relative) == (says, None)


def test_quick_has_a_map_of_heads_and_one_of_channels() -> None:
    """A cross is a map with blanks; the article's points, all at one token count, have none."""
    found = list(maps(quick()))
    assert [each.axis for each in found] == [HEADS, CHANNELS]
    assert [len(each.cells) for each in found] == [7, 7]
    assert [each.name for each in found] == [
        "winners-tokens-heads-vit-cpu-float32-inference-b8-c384-t1",
        "winners-tokens-channels-vit-cpu-float32-inference-b8-h6-t1",
    ]


@pytest.mark.slow
def test_every_mode_has_a_map_of_its_own() -> None:
    """`full` measures three modes over tokens and heads and over tokens and channels."""
    names = [each.name for each in maps(results(load_sweep("full").cases(), processes=1))]
    assert len(names) == len(set(names)) == 6


@pytest.mark.parametrize(
    "at", [GRID[:2], [GRID[0], GRID[2]], GRID[:1]], ids=["one token count", "one head", "one point"]
)
def test_a_map_needs_two_places_on_either_axis(at: list[Point]) -> None:
    """A row or a column is a series, and the other pictures show it."""
    assert list(maps(led({"eager": 0.04, "sdpa": 0.02}, at))) == []


def test_a_table_in_which_nothing_was_measured_has_no_map() -> None:
    """A map of failures would say nothing of who wins."""
    assert (
        list(maps(results([Case(at, "eager") for at in GRID], {Case(at, "eager"): ("oom", "") for at in GRID}))) == []
    )
