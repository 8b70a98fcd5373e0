"""Which rows stand in one series, the estimates in rows, and ratios of two."""

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
    Row,
    by,
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
from tests.analyse.tables import timed_row
from tests.examples import case, point


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


# ratios


def rival(log: float, spread: float = 0.01) -> list[Row]:
    """Return the rows of eager and of sdpa at a point; sdpa's speed-up has this logarithm, with a little scatter."""
    times = [math.exp(-log + spread * step) for step in (-1, 0, 1)]
    return [timed_row("eager", [1.0] * 3, [1.0] * 3), timed_row("sdpa", times, [1.0] * 3)]


def test_a_lead_is_the_ratio_of_two_rows_with_its_interval() -> None:
    """Sdpa at 1.2 times the baseline and eager at 1: it is 1.2 times as fast, and its interval that of the speed-up."""
    eager, sdpa = rival(math.log(1.2))
    lead = times_as_fast(sdpa, eager)
    half = 9.925 * 0.01 / math.sqrt(3)
    assert lead.value == pytest.approx(1.2)
    assert (lead.low, lead.high) == pytest.approx((1.2 * math.exp(-half), 1.2 * math.exp(half)), rel=1e-4)
    assert times_as_fast(eager, sdpa).value == pytest.approx(1 / 1.2)


def test_speedups_go_before_latencies() -> None:
    """Latencies that drifted change nothing; where the baseline failed they serve, in both directions."""
    eager, sdpa = rival(math.log(1.2))
    assert times_as_fast({**sdpa, "latency_s": 9.0}, eager) == times_as_fast(sdpa, eager)
    of = times_as_fast({**sdpa, "speedup": None}, timed_row("eager", [1.5, 1.52, 1.48]))
    assert of.value == pytest.approx(1.5 * 1.2)
    assert of.low < 1.8 < of.high
    assert times_as_fast(timed_row("eager", [1.5]), sdpa).value == pytest.approx(1 / 1.8)
