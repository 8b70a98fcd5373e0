"""The picture of what to use for each kind of attention."""

from typing import Any

import pandas as pd
import pytest

from bench.plan.case import Point
from bench.show.charts.overview import pictures
from bench.show.charts.winners import STRONGEST
from bench.show.picture import Picture, Shape
from tests.make.points import of_layer
from tests.make.results import timed

TOKENS, WIDTHS, HEADS = (64, 128, 256), (32, 64), 2
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "mask causal": {"mask": "causal"},
    "given bias": {"attn_bias": "given"},
    "77 keys": {"num_kv_tokens": 77},
}
SDPA_S = {"plain": 0.02, "mask causal": 0.01, "given bias": 0.05, "77 keys": 0.04}
"""What sdpa takes where eager takes 0.04 seconds."""


def points(**columns: Any) -> list[Point]:
    """Return the points of a kind."""
    sizes = [(tokens, HEADS * width) for tokens in TOKENS for width in WIDTHS]
    return [
        of_layer("core", **{"num_tokens": tokens, "channels": c, "token_len": c, "num_heads": HEADS, **columns})
        for tokens, c in sizes
    ]


def kinds_of_attention() -> pd.DataFrame:
    """Return results of five kinds of attention over tokens, or keys, and the width of a head."""
    tables = [timed(points(**columns), {"eager": 0.04, "sdpa": SDPA_S[name]}) for name, columns in KINDS.items()]
    keys = [at for tokens in TOKENS for at in points(batch=8, num_tokens=1, num_kv_tokens=tokens)]
    keys = [*dict.fromkeys(keys)]
    return pd.concat([*tables, timed(keys, {"eager": 0.04, "sdpa": 0.005})], ignore_index=True)


@pytest.fixture(scope="module")
def drawn() -> Picture:
    """Return the only overview of the kinds."""
    (only,) = pictures(kinds_of_attention())
    return only


def test_each_kind_is_named_by_what_it_differs_in(drawn: Picture) -> None:
    """Those that differ in more come later; one query says its batch too, which no other has."""
    assert drawn.name == "overview-core-cpu-float32-inference-h2-t1"
    assert [cells.title for cells, _ in drawn.stacks] == [*KINDS, "one query, B=8"]


def test_a_cell_has_the_colour_and_the_speedup_of_what_to_use(drawn: Picture) -> None:
    """The baseline has 1; what is shown to be the fastest has the strongest colour."""
    plain, causal, biased, *_ = (cells.rows for cells, _ in drawn.stacks)
    assert [float(row["number"]) for row in causal] == pytest.approx([4.0] * len(causal), rel=0.01)
    assert {(row["name"], row["number"], row["strength"]) for row in biased} == {("eager", "1.00", STRONGEST)}
    assert len(plain) == len(TOKENS) * len(WIDTHS)


def test_below_a_map_stands_the_speedup_of_sdpa_for_each_width(drawn: Picture) -> None:
    """Over the same places, on the same scale in all kinds, with a band."""
    lines = [panel for _, panel in drawn.stacks]
    assert len({panel.y.ends for panel in lines}) == 1
    for panel in lines:
        assert [of.shape for of in panel.marks] == [Shape.RULE, Shape.BAND, Shape.LINE]
        assert {row["width"] for row in panel.rows} == {*map(str, WIDTHS)}
        assert panel.x.ticks == TOKENS
    assert [panel.x.title for panel in lines] == ["tokens N"] * 4 + ["keys M"]
    assert [row["speedup"] for row in lines[0].rows] == pytest.approx([2.0] * len(lines[0].rows), rel=0.01)


def test_the_words_say_what_numbers_and_lines_are(drawn: Picture) -> None:
    """With the baseline, the widths and the processes; the legend has what is named."""
    text = " ".join(drawn.notes)
    assert "number: how many times as fast as eager" in text
    assert "D = 32 dotted, D = 64 solid" in text
    assert "3 processes" in text
    assert [*drawn.legend] == ["eager", "sdpa"]


def test_one_kind_alone_has_no_overview() -> None:
    """It has its map."""
    assert [*pictures(timed(points(), {"eager": 0.04, "sdpa": 0.02}))] == []
