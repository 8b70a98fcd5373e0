"""Which rows stand in one series."""

import math
from typing import Any

import numpy as np
import pytest

from bench.analyse.scaling.series import (
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
)
from bench.stats.estimates import half_widths
from tests.analyse.planted import row
from tests.examples import case, point


def at(**columns: Any) -> Row:
    """Return a row of eager at a point."""
    return row("eager", [1.0], **columns)


@pytest.mark.parametrize(
    ("axis", "columns", "found"),
    [
        (TOKENS, {}, {"num_tokens"}),
        (TOKENS, {"image_size": 224, "patch_size": 16}, {"num_tokens", "image_size"}),
        (HEADS, {}, {"num_heads"}),
        (CHANNELS, {}, {"channels", "token_len"}),
        (CHANNELS, {"token_len": 49, "channels": 64}, {"channels"}),
    ],
)
def test_what_moves_along_an_axis(axis: Axis, columns: dict[str, int], found: set[str]) -> None:
    """An image's tokens follow its size, and the token length follows the channels where it equals them."""
    assert moving(axis, point(**columns)) == found


def test_images_of_growing_size_are_one_series_of_tokens() -> None:
    """Tokens that follow from the image change with it, and neither splits the series."""
    sizes = {32: 4, 64: 16, 128: 64}
    rows = [at(image_size=size, num_tokens=tokens) for size, tokens in sizes.items()]
    (group,) = groups(rows, TOKENS)
    assert places(group, TOKENS) == (4, 16, 64)


def test_any_other_column_splits_a_series() -> None:
    """Rows of two batches are two series, whatever else they share."""
    rows = [at(num_tokens=tokens, batch=batch) for tokens in (50, 197) for batch in (1, 8)]
    assert [{row["batch"] for row in group} for group in groups(rows, TOKENS)] == [{1}, {8}]
    assert len(groups(rows, TOKENS, {"batch"})) == 1


def test_masked_and_unmasked_points_are_two_series() -> None:
    """A mask is another work, so no picture and no crossover holds both, and its name stands in their files."""
    rows = [at(num_tokens=tokens, mask=mask) for tokens in (50, 197) for mask in ("none", "causal")]
    found = groups(rows, TOKENS)
    assert [{row["mask"] for row in group} for group in found] == [{"none"}, {"causal"}]
    assert ["causal" in point_of(group[0]).short_name({"num_tokens"}) for group in found] == [False, True]


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
    assert len(gathered(cross, [TOKENS, HEADS])) == 1
    assert len(gathered(cross, [TOKENS])) == 3


def test_rows_are_told_apart_by_a_column_in_their_order() -> None:
    """Values come in the order of the rows, and so do the rows of each."""
    rows = [at(num_tokens=tokens, batch=batch) for batch in (8, 1) for tokens in (197, 50)]
    found = by(rows, "batch")
    assert list(found) == [8, 1]
    assert [row["num_tokens"] for row in found[8]] == [197, 50]


def test_the_error_of_a_latency_comes_back_from_its_interval() -> None:
    """A table doesn't hold the degrees of freedom: a half-width is 1.96 errors, as with many."""
    found = log_latencies([{"latency_s": 2.0, "latency_low_s": 2 / 1.1, "latency_high_s": 2.2}])
    assert found.value[0] == pytest.approx(math.log(2))
    assert found.error[0] == pytest.approx(math.log(1.1) / 1.96, rel=1e-4)
    assert half_widths(found)[0] == pytest.approx(math.log(1.1))


def test_the_error_of_a_speedup_comes_back_from_its_interval() -> None:
    """Four degrees of freedom: a half-width is 2.776 errors. The baseline has none, and one process knows none."""
    cells = [(1.5, 1.2, 1.875, 4.0), (1.0, 1.0, 1.0, 4.0), (2.0, None, None, None)]
    columns = ("speedup", "speedup_low", "speedup_high", "log_ratio_freedom")
    found = log_speedups([dict(zip(columns, row, strict=True)) for row in cells])
    assert found.value == pytest.approx(np.log([1.5, 1.0, 2.0]))
    assert found.error == pytest.approx([math.log(1.25) / 2.776, 0, math.nan], rel=1e-3, nan_ok=True)


def test_one_process_has_a_value_alone() -> None:
    """A latency of one process has neither error nor degrees of freedom."""
    found = log_latencies([row("sdpa", [math.e])])
    assert found.value[0] == pytest.approx(1)
    assert np.isnan([found.error[0], found.freedom[0]]).all()
