"""The picture of what to use for each kind of attention."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench.plan.case import Point
from bench.show.charts.overview import pictures
from bench.show.charts.sheet import Picture
from tests.make.points import of_layer
from tests.make.results import timed
from tests.show.charts.drawn import made, words

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
    (only,) = made(pictures(kinds_of_attention()))
    return only


def test_each_kind_is_named_by_what_it_differs_in(drawn: Picture) -> None:
    """Those that differ in more come later; one query says its batch too, which no other has."""
    assert drawn.name == "overview-core-cpu-float32-inference-h2-t1"
    assert [each.get_title("left") for each in drawn.figure.axes[:5]] == [*KINDS, "one query, B=8"]


def test_a_cell_has_the_speedup_of_what_to_use(drawn: Picture) -> None:
    """The baseline has 1."""
    plain, causal, biased, *_ = ([text.get_text() for text in axes.texts] for axes in drawn.figure.axes)
    assert [float(each) for each in causal] == pytest.approx([4.0] * len(causal), rel=0.01)
    assert {*biased} == {"1.00"}
    assert len(plain) == len(TOKENS) * len(WIDTHS)


def test_below_a_map_stands_the_speedup_of_sdpa_for_each_width(drawn: Picture) -> None:
    """On the same scale in all kinds."""
    lines = drawn.figure.axes[5:]
    assert len({axes.get_ylim() for axes in lines}) == 1
    assert [axes.get_xlabel() for axes in lines] == ["tokens N"] * 4 + ["keys M"]
    for line in lines[0].lines[1:]:
        assert [*np.asarray(line.get_ydata())] == pytest.approx([2.0] * len(TOKENS), rel=0.01)


def test_the_words_say_what_numbers_and_lines_are(drawn: Picture) -> None:
    """With the baseline, the widths and the processes."""
    for each in ("number: how many times as fast as eager", "D = 32 dotted, D = 64 solid", "3 processes"):
        assert each in words(drawn)


def test_one_kind_alone_has_no_overview() -> None:
    """It has its map."""
    assert [*pictures(timed(points(), {"eager": 0.04, "sdpa": 0.02}))] == []
