"""Which rows stand in one series, the estimates in rows, and where the fastest changes."""

import math
from typing import Any

import numpy as np
import pytest

from bench.analyse.series import (
    AXES,
    CHANNELS,
    HEADS,
    TOKENS,
    Axis,
    Crossover,
    Leaders,
    Row,
    by,
    crossovers,
    gathered,
    groups,
    log_latencies,
    log_speedups,
    moving,
    places,
    point_of,
    times_as_fast,
)
from bench.stats.estimates import half_widths
from tests.analyse.tables import HELD, Law, draws, exact, planted, timed_row
from tests.examples import case, point

PLACES = (50, 100, 197, 577, 1024)


def at(**columns: Any) -> Row:
    """Return a row of eager at a point."""
    return timed_row("eager", [1.0], **columns)


# series


@pytest.mark.parametrize(
    ("axis", "columns", "expected"),
    [
        (TOKENS, {}, {"num_tokens"}),
        (TOKENS, {"image_size": 224, "patch_size": 16}, {"num_tokens", "image_size"}),
        (HEADS, {}, {"num_heads"}),
        (CHANNELS, {}, {"channels", "token_len"}),
        (CHANNELS, {"token_len": 49, "channels": 64}, {"channels"}),
    ],
)
def test_columns_that_move_along_an_axis(axis: Axis, columns: dict[str, int], expected: set[str]) -> None:
    """An image's tokens follow its size, and the token length follows the channels where it equals them."""
    assert moving(axis, point(**columns)) == expected


def test_images_of_growing_size_are_one_series_of_tokens() -> None:
    """Tokens that follow from the image change with it, and neither splits the series."""
    (group,) = groups(
        [at(image_size=size, num_tokens=tokens) for size, tokens in ((32, 4), (64, 16), (128, 64))], TOKENS
    )
    assert places(group, TOKENS) == (4, 16, 64)


def test_any_other_column_splits_a_series() -> None:
    """Rows of two batches are two series, whatever else they share, and so are masked and unmasked ones."""
    rows = [at(num_tokens=tokens, batch=batch) for tokens in (50, 197) for batch in (1, 8)]
    assert [{row["batch"] for row in group} for group in groups(rows, TOKENS)] == [{1}, {8}]
    assert len(groups(rows, TOKENS, {"batch"})) == 1
    masked = groups([at(num_tokens=n, mask=mask) for n in (50, 197) for mask in ("none", "causal")], TOKENS)
    assert [{row["mask"] for row in group} for group in masked] == [{"none"}, {"causal"}]
    assert ["causal" in point_of(group[0]).short_name({"num_tokens"}) for group in masked] == [False, True]


def test_pairs_are_left_out_beside_a_longer_series_of_the_same_setting() -> None:
    """Two token counts at one head are no sweep beside four at six heads, but alone they are; one place is none."""
    long = [at(num_tokens=tokens) for tokens in (50, 197, 577, 1024)]
    pair = [at(num_tokens=tokens, num_heads=1) for tokens in (197, 577)]
    assert [{row["num_heads"] for row in group} for group in groups([*long, *pair], TOKENS)] == [{6}]
    assert [{row["num_heads"] for row in group} for group in groups(pair, TOKENS)] == [{1}]
    assert [groups([at(), {**at(), **case("sdpa").columns()}], axis) for axis in AXES] == [[], [], []]


def test_two_axes_gather_what_differs_in_either() -> None:
    """A cross of tokens and heads is one group over both, and two over either alone."""
    cross = [at(num_tokens=tokens) for tokens in (50, 197)] + [at(num_heads=heads) for heads in (1, 3)]
    assert (len(gathered(cross, [TOKENS, HEADS])), len(gathered(cross, [TOKENS]))) == (1, 3)


def test_rows_by_a_column_keep_their_order() -> None:
    """Values come in the order of the rows, and so do the rows of each."""
    by_batch = by([at(num_tokens=tokens, batch=batch) for batch in (8, 1) for tokens in (197, 50)], "batch")
    assert {batch: [row["num_tokens"] for row in rows] for batch, rows in by_batch.items()} == {
        8: [197, 50],
        1: [197, 50],
    }
    assert [*by_batch] == [8, 1]


# estimates


def test_the_error_of_a_latency_comes_back_from_its_interval() -> None:
    """A table doesn't hold the degrees of freedom: a half-width is 1.96 errors, as with many; one process has none."""
    of = log_latencies(
        [{"latency_s": 2.0, "latency_low_s": 2 / 1.1, "latency_high_s": 2.2}, timed_row("sdpa", [math.e])]
    )
    assert of.value == pytest.approx([math.log(2), 1])
    assert of.error == pytest.approx([math.log(1.1) / 1.96, math.nan], rel=1e-4, nan_ok=True)
    assert half_widths(of)[0] == pytest.approx(math.log(1.1))
    assert math.isnan(of.freedom[1])


def test_the_error_of_a_speedup_comes_back_from_its_interval() -> None:
    """Four degrees of freedom: a half-width is 4.604 errors. The baseline has none, and one process knows none."""
    cells = [(1.5, 1.2, 1.875, 4.0), (1.0, 1.0, 1.0, 4.0), (2.0, None, None, None)]
    columns = ("speedup", "speedup_low", "speedup_high", "log_ratio_freedom")
    of = log_speedups([dict(zip(columns, each, strict=True)) for each in cells])
    assert of.value == pytest.approx(np.log([1.5, 1.0, 2.0]))
    assert of.error == pytest.approx([math.log(1.25) / 4.604, 0, math.nan], rel=1e-3, nan_ok=True)


# crossovers


def power(at: int, exponent: float) -> Law:
    """Return a law that takes a second at a place, with this exponent."""
    return lambda tokens: (tokens / at) ** exponent


def rival(*logs: float, places: tuple[int, ...] = (100, 400), spread: float = 0.01) -> list[Row]:
    """Return rows of eager and of sdpa, whose speed-ups have these logarithms with a little scatter."""
    rows = []
    for place, log in zip(places, logs, strict=True):
        times = [math.exp(-log + spread * step) for step in (-1, 0, 1)]
        rows += [
            timed_row("eager", [1.0] * 3, [1.0] * 3, num_tokens=place),
            timed_row("sdpa", times, [1.0] * 3, num_tokens=place),
        ]
    return rows


def leaders(rows: list[Row]) -> Leaders:
    """Return who may be the fastest at each place: the fastest, and all that it is not shown to be faster than."""
    return {place: _may_be_fastest(own) for place, own in by(rows, "num_tokens").items()}


def _may_be_fastest(rows: list[Row]) -> tuple[str, ...]:
    first, *others = sorted(rows, key=lambda row: -(row["speedup"] or 1 / row["latency_s"]))
    return tuple(
        row["implementation"] for row in (first, *others) if row is first or times_as_fast(first, row).low <= 1
    )


def only(rows: list[Row]) -> Crossover:
    """Return the only crossover among rows."""
    (crossover,) = crossovers(rows, leaders(rows))
    return crossover


@pytest.mark.slow
@pytest.mark.parametrize("processes", [3, 5])
@pytest.mark.parametrize(("sd", "meeting"), [(0.02, 300), (0.1, 300), (0.1, 70)])
def test_intervals_hold_a_planted_crossover(processes: int, sd: float, meeting: int) -> None:
    """Two power laws that meet at a place: in 90 of 100 draws or more the interval holds it."""
    laws = {"eager": power(meeting, 1.6), "sdpa": power(meeting, 1.2), "manual": lambda n: 2 * power(meeting, 1.6)(n)}
    held = []
    for rng in draws(processes):
        rows = planted(rng, laws, PLACES, processes=processes, sd=sd / 2, drift=0.1)
        for each in crossovers(rows, leaders(rows)):
            assert {each.before, each.after} == {"eager", "sdpa"}
            held.append(each.tokens.low <= meeting <= each.tokens.high)
    assert len(held) >= HELD
    assert np.mean(held) >= 0.9


def test_the_place_is_interpolated_in_logarithms_and_its_interval_ends_where_the_ratios_leaves_one() -> None:
    """Ratios of e^-0.1 at 100 tokens and e^0.1 at 400 are 1 at 200.

    The error in the middle of two like places is 1 / √2 of theirs, with twice the degrees of freedom. The ratio rises
    by 0.2 over two doublings, so an error of 0.01 / √3 / √2 and t(4) = 2.776 make ±0.0113, that is ±0.0785 of the
    logarithm of tokens; it grows a little with the distance from the middle.
    """
    crossover = only(rival(-0.1, 0.1))
    assert (crossover.before, crossover.after) == ("eager", "sdpa")
    assert crossover.tokens.value == pytest.approx(200)
    half = 2.776 * 0.01 / math.sqrt(6) / 0.2 * math.log(4)
    assert math.log(crossover.tokens.high / 200) == pytest.approx(half, rel=0.12)
    assert math.log(200 / crossover.tokens.low) == pytest.approx(half, rel=0.12)


def test_several_changes_come_in_their_order() -> None:
    """Eager, then sdpa, then online: two crossovers, without intervals if each has one process."""
    laws = {"eager": power(100, 2.0), "sdpa": power(100, 1.5), "online": lambda n: 1.5 * power(100, 1.0)(n)}
    rows = [each for name, law in laws.items() for each in exact(name, law, (30, 60, 120, 300, 900))]
    changes = crossovers(rows, leaders(rows))
    assert [(each.before, each.after) for each in changes] == [("eager", "sdpa"), ("sdpa", "online")]
    # 1.5 (n / 100) = (n / 100) ** 1.5 where n / 100 = 2.25
    assert [each.tokens.value for each in changes] == pytest.approx([100, 225])
    assert not any(each.tokens.is_known for each in changes)


@pytest.mark.parametrize(
    ("logs", "places"), [((-0.001, 0.001), (100, 400)), ((0.1, -0.001, 0.1), (100, 200, 400)), ((), ())]
)
def test_a_change_between_ties_is_none(logs: tuple[float, ...], places: tuple[int, ...]) -> None:
    """Two that tie on both sides change by chance, and so does a winner that ties for a while with a faster one."""
    rows = rival(*logs, places=places)
    assert not rows or {*map(len, leaders(rows).values())} >= {2}
    assert crossovers(rows, leaders(rows)) == []


@pytest.mark.parametrize(
    ("logs", "places", "low", "high"),
    [
        ((-0.1, 0.001, 0.1), (100, 200, 400), (100, 200), (200, 400)),
        ((-0.005, 0.2), (100, 400), (0, 0), (100, 400)),
        ((-0.2, 0.005), (100, 400), (100, 400), (math.inf, math.inf)),
    ],
    ids=["a tie between", "a tie at the smallest place", "a tie at the largest place"],
)
def test_a_tie_widens_the_interval(
    logs: tuple[float, ...], places: tuple[int, ...], low: tuple[float, float], high: tuple[float, float]
) -> None:
    """It spans a tie in the middle, and is open to the side on which nobody is shown to be the fastest."""
    tokens = only(rival(*logs, places=places)).tokens
    assert low[0] <= tokens.low <= low[1]
    assert 100 < tokens.value < 400
    assert high[0] <= tokens.high <= high[1]


def test_one_who_wins_for_want_of_a_rival_overtakes_nobody() -> None:
    """Where the winner ran out of memory, another leads without having become faster."""
    rows = [*exact("eager", power(1, 1.0), (100, 400)), *exact("online", lambda n: 2.0 * n, (100, 400, 1600))]
    assert leaders(rows)[1600] == ("online",)
    assert crossovers(rows, leaders(rows)) == []
    alone = [*exact("eager", power(1, 1.0), (100,)), *exact("online", power(1, 1.0), (400,))]
    assert crossovers(alone, leaders(alone)) == []


@pytest.mark.parametrize(("drift", "changes"), [(0.5, {}), (0.0, {"speedup": None})])
def test_paired_ratios_go_before_latencies(drift: float, changes: Row) -> None:
    """A drift of both hides the change in latencies and not in ratios; latencies serve if the baseline fails."""
    laws = {"eager": power(200, 1.5), "sdpa": power(200, 1.2)}
    rows = planted(np.random.default_rng(4), laws, (50, 800), processes=5, sd=0.01, drift=drift)
    tokens = only([{**each, **changes} for each in rows]).tokens
    assert 150 < tokens.low < 200 < tokens.high < 260


def test_a_lead_is_the_ratio_of_two_rows_with_its_interval() -> None:
    """Sdpa at 1.2 times the baseline and eager at 1: it is 1.2 times as fast, and its interval that of the speed-up."""
    eager, sdpa = rival(math.log(1.2), places=(100,))
    lead = times_as_fast(sdpa, eager)
    half = 9.925 * 0.01 / math.sqrt(3)
    assert lead.value == pytest.approx(1.2)
    assert (lead.low, lead.high) == pytest.approx((1.2 * math.exp(-half), 1.2 * math.exp(half)), rel=1e-4)
    assert times_as_fast(eager, sdpa).value == pytest.approx(1 / 1.2)
