"""The map of winners as a picture."""

import functools
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from bench.analyse.fastest import ALONE, NOTHING, WITHOUT_INTERVALS, Outcome
from bench.analyse.ranking import NOT_DECIDED, TIE, WINNER
from bench.analyse.scaling.series import CHANNELS, HEADS
from bench.analyse.summary import summarise
from bench.plan.case import Case, Point
from bench.plan.names import IMPLEMENTATIONS
from bench.plan.sweep import load_sweep
from bench.show.figures import catalogue
from bench.show.figures.winner_map import OPEN, TIED, figure, maps, words
from bench.show.palette import style
from bench.stats.estimates import Interval
from tests.examples import point
from tests.show.example_results import Fate, quick, record, results
from tests.show.figures.legible import assert_legible

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


def test_a_winner_is_named_with_its_lead_over_the_next() -> None:
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
    """A lead without an interval is a value alone."""
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


LEAD = Interval(1.2, 1.05, 1.37)


@functools.cache
def sheets() -> list[Figure]:
    """Return maps of what isn't decided, of winners, of leads without intervals, of failures, and of ties."""
    fates: dict[Case, Fate] = {
        **{Case(GRID[0], name): ("oom", "") for name in ("eager", "sdpa")},
        Case(GRID[1], "sdpa"): ("oom", ""),
    }
    tables = [
        quick(),
        led({"eager": 0.04, "sdpa": 0.02}),
        led({"eager": 0.04, "sdpa": 0.02}, processes=1),
        results([Case(at, name) for at in GRID for name in ("eager", "sdpa")], fates),
        led({"eager": 0.02, "sdpa": 0.02}, processes=10),
    ]
    return [figure(each) for table in tables for each in maps(table)]


def draw(table: pd.DataFrame, folder: Path) -> list[Path]:
    """Write the pictures of this kind, and return the files."""
    return catalogue.draw(folder, ["winners"], results=table)


def cells(made: Figure) -> dict[str, Rectangle]:
    """Return the cells of a map by column and row."""
    found = [patch for patch in made.axes[0].patches if str(patch.get_gid()).startswith("cell ")]
    return {str(patch.get_gid()): patch for patch in found if isinstance(patch, Rectangle)}


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        (Outcome(WINNER, ("sdpa",), "mha", LEAD), ["sdpa", "1.20x [1.05, 1.37]", "as fast as mha"]),
        (Outcome(TIE, ("sdpa", "mha"), "mha", LEAD), ["tie", "within 2 %", "sdpa", "mha"]),
        (Outcome(TIE, tuple("abcde"), "b", LEAD), ["tie", "within 2 %", "a", "b", "c", "2 others"]),
        (Outcome(NOT_DECIDED, ("a", "b"), "b", LEAD, 7), ["not decided", "a", "or b", "about 7 more processes"]),
        (Outcome(NOT_DECIDED, tuple("abcde"), "b", LEAD), ["not decided", "a", "b", "c", "or 2 others"]),
        (Outcome(WITHOUT_INTERVALS, ("sdpa",), "mha", LEAD), ["sdpa", "fastest, not decided"]),
        (Outcome(ALONE, ("sdpa",)), ["sdpa", "only one measured"]),
        (Outcome(NOTHING), ["nothing was measured"]),
    ],
)
def test_a_cell_names_its_winner_and_by_how_much(cell: Outcome, said: list[str]) -> None:
    """Who leads stands first, then by how much, over whom."""
    assert words(cell) == said


def test_a_winner_has_its_colour_in_every_cell() -> None:
    """The same colour as in all other pictures."""
    (found,) = maps(led({"eager": 0.04, "sdpa": 0.02}))
    made = cells(figure(found))
    assert len(made) == 4
    assert {to_hex(cell.get_facecolor()) for cell in made.values()} == {style("sdpa").colour}
    assert not any(cell.get_hatch() for cell in made.values())


def test_a_tie_has_a_colour_and_stripes_of_its_own() -> None:
    """No implementation has the colour of a tie, and stripes tell it without colour."""
    made = cells(sheets()[-1])
    assert {to_hex(cell.get_facecolor()) for cell in made.values()} == {TIED}
    assert all(cell.get_hatch() for cell in made.values())
    assert TIED not in {style(name).colour for name in IMPLEMENTATIONS}


def test_what_is_not_decided_is_grey() -> None:
    """It has neither the colour of an implementation nor that of a tie."""
    (found,) = maps(led({"eager": 0.02, "sdpa": 0.02}).assign(standing=NOT_DECIDED))
    made = cells(figure(found))
    assert {to_hex(cell.get_facecolor()) for cell in made.values()} == {OPEN}
    assert not any(cell.get_hatch() for cell in made.values())
    assert OPEN not in {style(name).colour for name in IMPLEMENTATIONS}


def test_what_leads_without_having_won_is_pale() -> None:
    """One process is no ground for the full colour."""
    (found,) = maps(led({"eager": 0.04, "sdpa": 0.02}, processes=1))
    colours = {to_hex(cell.get_facecolor()) for cell in cells(figure(found)).values()}
    assert style("sdpa").colour not in colours
    assert not {TIED, OPEN} & colours


def test_all_words_are_on_the_page_and_none_overlap() -> None:
    """Neither in crowded cells nor in the heading of a small map."""
    for made in sheets():
        assert_legible(made)


def test_the_footnotes_explain_what_is_in_the_map_alone() -> None:
    """Stripes, pale cells and blanks are explained where there are any."""
    winners = " ".join(text.get_text() for text in sheets()[2].texts)
    assert "95 % interval over 3 processes" in winners
    assert not any(word in winners for word in ("hatched", "grey", "pale", "blank"))
    mixed = " ".join(text.get_text() for text in sheets()[0].texts)
    assert "grey: not decided" in mixed
    assert "blank: not measured" in mixed
    assert "hatched: shown to be within 2 %" in " ".join(text.get_text() for text in sheets()[-1].texts)


def test_a_png_and_an_svg_are_written_for_each_map(tmp_path: Path) -> None:
    """The same table gives the same SVG, byte for byte."""
    table = led({"eager": 0.04, "sdpa": 0.02})
    one, other = draw(table, tmp_path / "one"), draw(table, tmp_path / "other")
    assert [path.suffix for path in one] == [".png", ".svg"]
    assert one[1].read_bytes() == other[1].read_bytes()


def test_no_map_writes_nothing(tmp_path: Path) -> None:
    """A single point leaves no folder behind."""
    assert draw(results([Case(point(), "eager")]), tmp_path / "plots") == []
    assert not (tmp_path / "plots").exists()
