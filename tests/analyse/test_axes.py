"""Which rows stand in one series."""

from typing import Any

import pytest

from bench.analyse.axes import (
    AXES,
    HEADS,
    KEYS,
    PADDING,
    TOKENS,
    Axis,
    groups,
    places,
)
from bench.analyse.rows import Row, point_of
from tests.make.records import case
from tests.make.rows import row


def at(**columns: Any) -> Row:
    """Return a row of eager at a point."""
    return row(case(**columns))


def test_any_other_column_splits_a_series() -> None:
    """Rows of two batches are two series, and so are masked and unmasked ones."""
    rows = [at(num_tokens=tokens, batch=batch) for tokens in (50, 197) for batch in (1, 8)]
    assert [{row["batch"] for row in group} for group in groups(rows, TOKENS)] == [{1}, {8}]
    masked = groups([at(num_tokens=n, mask=mask) for n in (50, 197) for mask in ("none", "causal")], TOKENS)
    assert [{row["mask"] for row in group} for group in masked] == [{"none"}, {"causal"}]
    assert ["causal" in point_of(group[0]).short_name({"num_tokens"}) for group in masked] == [False, True]


def test_pairs_are_left_out_beside_a_longer_series_of_the_same_setting() -> None:
    """Two token counts at one head are a series only without the four at six heads; a single value never is."""
    long = [at(num_tokens=tokens) for tokens in (50, 197, 577, 1024)]
    pair = [at(num_tokens=tokens, num_heads=1) for tokens in (197, 577)]
    assert [{row["num_heads"] for row in group} for group in groups([*long, *pair], TOKENS)] == [{6}]
    assert [{row["num_heads"] for row in group} for group in groups(pair, TOKENS)] == [{1}]
    assert [groups([at(), {**at(), **case("sdpa").columns()}], axis) for axis in AXES] == [[]] * len(AXES)


KEYS_OF_ONE = [at(num_tokens=1, num_kv_tokens=keys) for keys in (512, 1024, 2048)]
CROSSED = [at(num_tokens=n, num_kv_tokens=keys) for keys, most in ((None, 3), (77, 2)) for n in (50, 197, 577)[:most]]
SHARES = {"uniform": 0.5, "zipf": 0.8, "list:7+6": 0.1, "fixed": None}


@pytest.mark.parametrize(
    ("axis", "rows", "series"),
    [
        (TOKENS, [at(image_size=size, num_tokens=n) for size, n in ((32, 4), (64, 16), (128, 64))], [(4, 16, 64)]),
        (KEYS, [*KEYS_OF_ONE, at(num_tokens=1)], [(512, 1024, 2048)]),
        (TOKENS, CROSSED, [(50, 197, 577), (50, 197)]),
        (HEADS, [at(num_heads=n, num_kv_heads=keys) for keys in (2, None) for n in (4, 6, 12)], [(4, 6, 12)] * 2),
        (PADDING, [{**at(lengths=name), "padding": share} for name, share in SHARES.items()], [(0.1, 0.5, 0.8)]),
    ],
    ids=["images", "keys", "tokens with a context or none", "heads that share keys", "lengths"],
)
def test_rows_along_an_axis_are_a_series(axis: Axis, rows: list[Row], series: list[tuple[float, ...]]) -> None:
    """What follows from the axis doesn't split it; points without a place on it are in none."""
    assert [places(group, axis) for group in groups(rows, axis)] == series
