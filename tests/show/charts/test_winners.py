"""The map of winners, by its data and its marks."""

import pandas as pd
import pytest

from bench.analyse.axes import CHANNELS, HEADS, KEYS
from bench.analyse.standing import ALONE, FASTEST, NOTHING
from bench.plan.case import Case
from bench.plan.sweep import load_sweep
from bench.show.charts.winners import STRONGEST, colour, maps, pictures
from bench.show.palette import light, mix, style
from impls.catalogue import IMPLEMENTATIONS
from tests.make.points import of_layer, vit_s
from tests.make.results import Fate, quick, results, timed
from tests.show.charts.drawn import made, words
from tests.show.test_palette import contrast

GRID = [vit_s(num_tokens=tokens, num_heads=heads) for tokens in (50, 197) for heads in (3, 6)]
SECONDS = {"eager": 0.04, "sdpa": 0.02}


def test_a_cell_has_what_to_use_there() -> None:
    """With its lead over the next."""
    (winners,) = maps(timed(GRID, {**SECONDS, "online": 0.01}))
    assert len(winners.cells) == 4
    cell = winners.cells[50, 3]
    assert (cell.standing, cell.name) == (FASTEST, "online")
    assert cell.ahead is not None
    assert 1.9 < cell.ahead.low < 2 < cell.ahead.high < 2.1


def test_the_text_of_every_cell_can_be_read() -> None:
    """On the strongest colour of every implementation."""
    for name in (*IMPLEMENTATIONS, "compiled_online", "mine:attend"):
        assert contrast(mix(light("surface"), style(name).colour, STRONGEST), light("ink")) > 4.5


@pytest.mark.parametrize(("failing", "standing"), [(("sdpa",), ALONE), (("sdpa", "eager"), NOTHING)])
def test_what_has_no_rival_has_no_lead(failing: tuple[str, ...], standing: str) -> None:
    """A cell says if one or none was measured."""
    fates: dict[Case, Fate] = {Case(GRID[0], name): ("oom", "") for name in failing}
    (winners,) = maps(results([Case(at, name) for at in GRID for name in ("eager", "sdpa")], fates))
    cell = winners.cells[50, 3]
    assert (cell.standing, cell.ahead) == (standing, None)


def test_quick_has_a_map_of_heads_and_one_of_channels() -> None:
    """A cross is a map with blanks; bounds, colours and blanks are explained where there are any."""
    assert [(each.axis, len(each.cells)) for each in maps(quick())] == [(HEADS, 7), (CHANNELS, 7)]
    assert [each.name for each in pictures(quick())] == [
        "winners-tokens-heads-vit-cpu-float32-inference-b8-c384-t1",
        "winners-tokens-channels-vit-cpu-float32-inference-b8-h6-t1",
    ]
    mixed, shown, alone = (
        words(made(pictures(table))[0]) for table in (quick(), timed(GRID, SECONDS), timed(GRID, SECONDS, processes=1))
    )
    assert "bounds are of 99 % over 3 processes" in mixed
    assert "blank: not measured" in mixed
    assert "fastest: " in shown
    assert not any(word in shown for word in ("within", "colour", "blank"))
    assert "fastest: " not in alone


def test_one_query_has_a_map_over_its_keys() -> None:
    """Other points with as many tokens as keys are not in it."""
    sizes = {"num_tokens": 1, "num_heads": 2}
    points = [of_layer("core", **sizes, num_kv_tokens=keys, channels=c) for keys in (64, 128) for c in (16, 32)]
    (winners,) = maps(timed([*points, of_layer("core", num_tokens=64, num_heads=2, channels=16)], SECONDS))
    assert (winners.along, winners.axis) == (KEYS, CHANNELS)
    assert [*winners.cells] == [(64, 16), (64, 32), (128, 16), (128, 32)]


@pytest.mark.slow
def test_every_mode_has_a_map_of_its_own() -> None:
    """`full` measures three modes over tokens and heads and over tokens and channels."""
    names = [each.name for each in pictures(results(load_sweep("full").cases(), processes=1))]
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


def test_a_cell_has_the_colour_of_what_to_use_as_strong_as_that_is_sure() -> None:
    """The whole colour if it is shown to be the fastest, paler where it may cost more, and palest without a bound."""
    close, shares = {"eager": 0.02, "sdpa": 0.0199}, []
    for table in (
        timed(GRID, SECONDS),
        timed(GRID, close).assign(standing="named", rank=[2, 1] * 4, slowdown_high=1.01),
        timed(GRID, close).assign(standing="named", rank=[2, 1] * 4, slowdown_high=1.08),
        timed(GRID, SECONDS, processes=1),
    ):
        (winners,) = maps(table)
        (shade,) = {colour(each) for each in winners.cells.values()}
        shares.append(shade)
    assert shares[0] == mix(light("surface"), style("sdpa").colour, STRONGEST)
    assert shares == sorted({*shares})
    assert len(shares) == 4
