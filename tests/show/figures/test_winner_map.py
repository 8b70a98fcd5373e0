"""The map of winners as a picture."""

import functools

import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from bench.analyse.fastest import ALONE, NOTHING, WITHOUT_INTERVALS, Outcome
from bench.analyse.ranking import NOT_DECIDED, TIE, WINNER
from bench.analyse.scaling.series import CHANNELS, HEADS
from bench.plan.case import Case
from bench.plan.names import IMPLEMENTATIONS
from bench.plan.sweep import load_sweep
from bench.show.figures.winner_map import OPEN, TIED, figure, maps, words
from bench.show.palette import style
from bench.stats.estimates import Interval
from tests.examples import point
from tests.show.example_results import Fate, quick, results, timed
from tests.show.figures.legible import assert_legible, drawn

GRID = [point(num_tokens=tokens, num_heads=heads) for tokens in (50, 197) for heads in (3, 6)]
SECONDS = {"eager": 0.04, "sdpa": 0.02}


def test_a_winner_is_named_with_its_lead_over_the_next() -> None:
    """Twice as fast as sdpa, not as eager, with the interval of the ratio of both."""
    (found,) = maps(timed(GRID, {**SECONDS, "online": 0.01}))
    assert len(found.cells) == 4
    cell = found.cells[50, 3]
    assert (cell.says, cell.names, cell.runner_up) == (WINNER, ("online",), "sdpa")
    assert cell.relative is not None
    assert cell.relative.low < 2 < cell.relative.high
    assert cell.relative.high / cell.relative.low < 1.1


@pytest.mark.parametrize(
    ("online_s", "processes", "says", "names"),
    [(0.02, 10, TIE, {"sdpa", "online"}), (0.03, 1, WITHOUT_INTERVALS, {"sdpa"})],
)
def test_who_ties_or_leads_without_having_won_is_named(
    online_s: float, processes: int, says: str, names: set[str]
) -> None:
    """Those that are shown to be within 2 % of each other tie; a lead without an interval is a value alone."""
    (found,) = maps(timed(GRID, {"eager": 0.04, "sdpa": 0.02, "online": online_s}, processes))
    assert {(cell.says, *sorted(cell.names)) for cell in found.cells.values()} == {(says, *sorted(names))}
    assert all(cell.relative and cell.relative.is_known is (says == TIE) for cell in found.cells.values())


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
    "table",
    [
        timed(GRID[:2], SECONDS),
        timed([GRID[0], GRID[2]], SECONDS),
        timed(GRID[:1], SECONDS),
        results([Case(at, "eager") for at in GRID], {Case(at, "eager"): ("oom", "") for at in GRID}),
    ],
    ids=["one token count", "one head", "one point", "nothing measured"],
)
def test_a_map_needs_two_places_on_either_axis(table: pd.DataFrame) -> None:
    """A row or a column is a series, and a map of failures would say nothing of who wins."""
    assert list(maps(table)) == []


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
        timed(GRID, SECONDS),
        timed(GRID, SECONDS, processes=1),
        results([Case(at, name) for at in GRID for name in ("eager", "sdpa")], fates),
        timed(GRID, {"eager": 0.02, "sdpa": 0.02}, processes=10),
    ]
    return [figure(each) for table in tables for each in maps(table)]


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


@pytest.mark.parametrize(
    ("table", "colour", "hatched"),
    [
        (timed(GRID, SECONDS), style("sdpa").colour, False),
        (timed(GRID, {"eager": 0.02, "sdpa": 0.02}, processes=10), TIED, True),
        (timed(GRID, {"eager": 0.02, "sdpa": 0.02}).assign(standing=NOT_DECIDED), OPEN, False),
        (timed(GRID, SECONDS, processes=1), "pale", False),
    ],
    ids=["won", "tie", "not decided", "lead without intervals"],
)
def test_a_cell_has_the_colour_of_what_it_says(table: pd.DataFrame, colour: str, hatched: bool) -> None:
    """A winner has its own as in all pictures; a tie, in stripes, and what is open have colours of no implementation.

    What leads in one process alone is pale.
    """
    (found,) = maps(table)
    cells = drawn(figure(found), "cell", Rectangle)
    colours = {to_hex(cell.get_facecolor()) for cell in cells.values()}
    assert len(cells) == 4
    assert {bool(cell.get_hatch()) for cell in cells.values()} == {hatched}
    assert not {TIED, OPEN} & {style(name).colour for name in IMPLEMENTATIONS}
    if colour == "pale":
        assert not {style("sdpa").colour, TIED, OPEN} & colours
    else:
        assert colours == {colour}


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
