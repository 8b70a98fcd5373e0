"""From the table to what a picture of lines shows."""

import pandas as pd
from matplotlib.axes import Axes

from bench.analyse.growth import scalings
from bench.analyse.rows import plain
from bench.plan.case import Case
from bench.plan.sweep import load_sweep
from bench.show.charts import lines
from bench.show.charts.sheet import Picture
from tests.make.points import vit_s
from tests.make.results import Fate, quick, results
from tests.show.charts.drawn import made, series

NAMES = ("eager", "sdpa", "online")
FOUR = [vit_s(num_tokens=number) for number in (50, 197, 577, 1024)]
OOM: dict[Case, Fate] = {Case(FOUR[2], "eager"): ("oom", ""), Case(FOUR[3], "eager"): ("oom", "")}


def pictures(table: pd.DataFrame) -> list[Picture]:
    """Return the pictures of a table."""
    return made(lines.pictures(table))


def tokens(fates: dict[Case, Fate] | None = None) -> list[Picture]:
    """Return the pictures of three implementations at four token counts."""
    return pictures(results([Case(at, name) for at in FOUR for name in NAMES], fates))


def main(of: Picture) -> Axes:
    """Return the axes."""
    return of.figure.axes[0]


def names(of: Picture) -> list[str]:
    """Return the names of the lines."""
    return [name for name, at in series(main(of)).items() if at and " = 1" not in name]


def failures(of: Picture) -> list[str]:
    """Return the names with what has no time, and where."""
    labels = main(of).get_legend_handles_labels()[1]
    return [label for label in labels if "\n" in label]


def kind(of: Picture) -> tuple[str, str]:
    """Return the quantity and the axis of a picture, which begin its name."""
    quantity, axis, *_ = of.name.split("-")
    return quantity, axis


def test_the_shipped_sweep_has_its_pictures() -> None:
    """`quick` shows tokens, heads (also at the article's shape) and channels, each under a name of its own.

    Along the channels the token length changes too: it is one series all the same.
    """
    drawn = pictures(quick())
    ratios = [(name, axis) for name in ("latency", "speedup") for axis in ("channels", "heads", "heads", "tokens")]
    assert sorted(map(kind, drawn)) == sorted([*ratios, ("memory", "tokens")])
    assert len({each.name for each in drawn}) == len(drawn)
    assert "latency-tokens-vit-cpu-float32-inference-b8-c384-h6-t1" in {each.name for each in drawn}
    along_channels = next(each for each in drawn if kind(each) == ("latency", "channels"))
    assert main(along_channels).get_xticks().tolist() == [96, 192, 384, 768]
    assert "token length = channels" in main(along_channels).get_xlabel()
    assert "c" not in {word[0] for word in along_channels.name.split("-b8-")[1].split("-")}


def test_a_fixed_token_length_makes_a_series_of_its_own() -> None:
    """Points that keep their token length are not mixed with those where it follows."""
    points = [vit_s(token_len=width or channels, channels=channels) for width in (0, 49) for channels in (96, 192, 384)]
    drawn = [each for each in pictures(results([Case(at, "eager") for at in points])) if kind(each)[1] == "channels"]
    assert {"c49→96" in each.name or "w49" in each.name for each in drawn} == {True, False}


def test_every_implementation_has_a_line() -> None:
    """But the baseline's speed-up, which is 1; neither a table in which all failed nor a single point has a picture."""
    latency, speedup, memory = tokens()
    assert [kind(each)[0] for each in (latency, speedup, memory)] == ["latency", "speedup", "memory"]
    assert [names(each) for each in (latency, speedup, memory)] == [[*NAMES], ["sdpa", "online"], [*NAMES]]
    assert latency.name == "latency-tokens-vit-cpu-float32-inference-b8-c384-h6-t1"
    assert tokens({Case(at, name): ("error", "") for at in FOUR for name in NAMES}) == []
    assert pictures(results([Case(vit_s(), "eager")])) == []


def test_a_failed_row_is_a_gap_and_a_failure() -> None:
    """A failed row is no row of the lines, and stands among the failures with its status.

    An implementation without a single time is in the picture; if it is the baseline there are no speed-ups.
    """
    latency = tokens(OOM)[0]
    assert [x for x, _ in series(main(latency))["eager"]] == [50, 197]
    assert failures(latency) == ["eager\noom at 577, 1024"]
    latency = tokens({Case(at, "sdpa"): ("unsupported", "") for at in FOUR})[0]
    assert names(latency) == ["eager", "online"]
    assert failures(latency) == ["sdpa\nunsupported at 50, 197, 577, 1024"]
    without_baseline = tokens({Case(at, "eager"): ("crashed", "") for at in FOUR})
    assert [kind(each)[0] for each in without_baseline] == ["latency", "memory"]


def test_pairs_are_drawn_where_nothing_longer_is() -> None:
    """Two places are a picture of their own, but not beside a real series of the same setting."""
    pair = [vit_s(num_heads=number) for number in (1, 4)]
    assert [kind(each)[1] for each in pictures(results([Case(at, "eager") for at in pair]))] == ["heads"]
    grid = [vit_s(num_tokens=n, num_heads=h) for n in (197, 577) for h in (1, 3, 6)]
    beside = [*grid, *(vit_s(num_tokens=n) for n in (50, 1024))]
    drawn = pictures(results([Case(at, "eager") for at in beside]))
    assert {"h6" in each.name.split("-") for each in drawn if kind(each)[1] == "tokens"} == {True}


def test_the_widest_sweep_has_a_number_of_pictures_that_one_can_look_at() -> None:
    """`full` has series of tokens, heads and channels in three modes, and none of its accidental pairs."""
    cases = [case for case in load_sweep("full").cases() if case.implementation in ("eager", "sdpa")]
    assert len({each.name for each in pictures(results(cases, processes=1))}) <= 50


def test_keys_of_a_core_have_pictures() -> None:
    """Latency, speed-up and memory over the keys, for each number of heads that they have, in files of their own."""
    points = [
        vit_s(layer="core", num_tokens=1, num_kv_tokens=keys, num_kv_heads=heads)
        for keys in (512, 1024, 2048)
        for heads in (None, 2)
    ]
    drawn = pictures(results([Case(at, name) for at in points for name in ("eager", "sdpa")]))
    assert {tuple(main(each).get_xticks()) for each in drawn} == {(512, 1024, 2048)}
    assert {kind(each) for each in drawn} >= {(name, "keys") for name in ("latency", "speedup", "memory")}
    assert len({each.name for each in drawn}) == len(drawn) == 2 * len({*map(kind, drawn)})


def test_shares_of_padding_are_a_linear_axis() -> None:
    """It goes from none to all, with a tick at each distribution of lengths; nothing grows along it."""
    points = [vit_s(batch=4, lengths=lengths) for lengths in ("list:197+197+197+197", "list:197+99+49+49")]
    table = results([Case(at, name) for at in points for name in ("eager", "sdpa", "loop")])
    drawn = {kind(each): main(each) for each in pictures(table)}
    assert {*drawn} == {(quantity, "padding") for quantity in ("latency", "speedup", "memory")}
    axes = drawn["latency", "padding"]
    assert (axes.get_xscale(), axes.get_xlim()) == ("linear", (0, 1))
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0%", "50%"]
    assert scalings(plain(table)) == []
