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
from bench.plan.case import Case
from bench.plan.names import IMPLEMENTATIONS
from bench.show import catalogue
from bench.show.palette import style
from bench.show.winner_map import OPEN, TIED, figure, words
from bench.show.winners import maps
from bench.stats.estimates import Interval
from tests.examples import point
from tests.show.figures import assert_legible
from tests.show.made import Fate, quick, results
from tests.show.test_winners import GRID, led

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
