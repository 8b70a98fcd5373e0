"""The picture of what to use for each kind of attention."""

from typing import Any

import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from bench.plan.case import Point
from bench.show.charts.overview import pictures
from bench.show.figures.page import figure
from bench.show.palette import mix, style
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
def drawn() -> Figure:
    """Return the only overview of the kinds as a figure."""
    (only,) = pictures(kinds_of_attention())
    assert only.name == "overview-core-cpu-float32-inference-h2-t1"
    return figure(only)


def of_maps(drawn: Figure) -> list[Axes]:
    """Return the axes of the maps."""
    return [axes for axes in drawn.axes if axes.get_title(loc="left")]


def test_each_kind_is_named_by_what_it_differs_in(drawn: Figure) -> None:
    """Those that differ in more come later; one query says its batch too, which no other has."""
    assert [axes.get_title(loc="left") for axes in of_maps(drawn)] == [*KINDS, "one query, B=8"]


def test_a_cell_has_the_colour_and_the_speedup_of_what_to_use(drawn: Figure) -> None:
    """The baseline has 1; what is shown to be the fastest has the strongest colour."""
    numbers = {axes.get_title(loc="left"): {text.get_text() for text in axes.texts} for axes in of_maps(drawn)}
    assert [float(each) for each in numbers["mask causal"]] == pytest.approx(
        [4.0] * len(numbers["mask causal"]), rel=0.01
    )
    assert numbers["given bias"] == {"1.00"}
    assert len(of_maps(drawn)[0].texts) == len(TOKENS) * len(WIDTHS)
    cell = next(patch for patch in of_maps(drawn)[2].patches if isinstance(patch, Rectangle))
    assert cell.get_facecolor()[:3] == pytest.approx(_rgb(mix("#ffffff", style("eager").colour, 0.4)), abs=0.01)


def test_below_a_map_stands_the_speedup_of_sdpa_for_each_width(drawn: Figure) -> None:
    """Over the same places, on the same scale in all kinds, with a band."""
    lines = [axes for axes in drawn.axes if axes not in of_maps(drawn)]
    assert len(lines) == len(KINDS) + 1
    assert len({axes.get_ylim() for axes in lines}) == 1
    for axes in lines:
        own = [line for line in axes.lines if line.get_marker() == "."]
        assert len(own) == len(axes.collections) == len(WIDTHS)
        assert [label.get_text() for label in axes.get_xticklabels()] == [*map(str, TOKENS)]
    assert [axes.get_xlabel() for axes in lines] == ["tokens N"] * 4 + ["keys M"]
    assert lines[0].lines[-1].get_ydata() == pytest.approx([2.0] * 3, rel=0.01)


def test_the_words_say_what_numbers_and_lines_are(drawn: Figure) -> None:
    """With the baseline, the widths and the processes; the legend has what is named."""
    text = " ".join(each.get_text() for each in drawn.texts)
    assert "number: how many times as fast as eager" in text
    assert "D = 32 dotted, D = 64 solid" in text
    assert "3 processes" in text
    assert [each.get_text() for each in drawn.legends[0].texts] == ["eager", "sdpa"]


def test_one_kind_alone_has_no_overview() -> None:
    """It has its map."""
    assert [*pictures(timed(points(), {"eager": 0.04, "sdpa": 0.02}))] == []


def _rgb(colour: str) -> list[float]:
    return [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
