"""Lines: values in their places, names and exponents at the ends, and cases without a time below."""

import re
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench.analyse.analysed_run import load
from bench.analyse.axes import AXES
from bench.analyse.rows import plain
from bench.plan.case import Case, Point
from bench.show.charts import lines
from bench.show.charts.sheet import Picture
from bench.show.text import LONGEST_NAME
from tests.make.points import vit_s
from tests.make.results import Fate, quick, results, timed
from tests.show.charts.drawn import ends, made, main, overlaps, series, words

PUBLISHED = Path(__file__).parents[3] / "results" / "published"
NAMES = ("eager", "sdpa", "online")
FOUR = [vit_s(num_tokens=number) for number in (50, 197, 577, 1024)]


def pictures(table: pd.DataFrame) -> dict[tuple[str, str], Picture]:
    """Return the pictures of a table by the quantity and the axis, which begin their names."""
    return {(words[0], words[1]): each for each in made(lines.pictures(table)) if (words := each.name.split("-"))}


def tokens(fates: dict[Case, Fate], names: tuple[str, ...] = NAMES) -> dict[tuple[str, str], Picture]:
    """Return the pictures of implementations at four token counts."""
    return pictures(results([Case(at, name) for at in FOUR for name in names], fates))


def test_the_shipped_sweep_has_its_pictures() -> None:
    """`quick` shows tokens, heads (also at the article's shape) and channels, whose token length changes too."""
    drawn = made(lines.pictures(quick()))
    kinds = sorted("-".join(each.name.split("-")[:2]) for each in drawn)
    ratios = [f"{name}-{axis}" for name in ("latency", "speedup") for axis in ("channels", "heads", "heads", "tokens")]
    assert kinds == sorted([*ratios, "memory-tokens"])
    assert len({each.name for each in drawn}) == len(drawn)
    along = next(each for each in drawn if each.name.startswith("latency-channels"))
    assert main(along).get_xticks().tolist() == [96, 192, 384, 768]
    assert "token length = channels" in main(along).get_xlabel()


@pytest.mark.parametrize("run", ["equal-shares-xeon-2core", "decode-xeon-2core"])
def test_a_mark_stands_at_its_value(run: str) -> None:
    """Every mark of every picture has the place and the value of a row in results.csv."""
    table = load(PUBLISHED / run)
    columns = {"latency": "latency_s", "memory": "memory_bytes", "speedup": "speedup", "energy": "energy_j"}
    axes = {axis.name: axis.column for axis in AXES}
    marks = 0
    for (quantity, axis), picture in pictures(table).items():
        rows = {(row["implementation"], row[axes[axis]], row[columns[quantity]]) for row in plain(table)}
        for name, at in series(main(picture)).items():
            assert {(name, x, y) for x, y in at} <= rows
            marks += len(at)
    assert marks > 20


def test_the_exponent_of_a_power_law_stands_behind_its_name() -> None:
    """Of times and bytes, between the last two places; among ratios the baseline is the line at 1, without a name."""

    def seconds(at: Point, power: float) -> float:
        return float(1e-6 * at.num_tokens**power)

    drawn = pictures(timed(FOUR, {"eager": partial(seconds, power=2.0), "sdpa": partial(seconds, power=1.2)}))
    assert ends(drawn["latency", "tokens"]) == ["sdpa  N^1.2", "eager  N^2.0"]
    assert ends(drawn["speedup", "tokens"]) == ["sdpa"]
    assert ends(drawn["memory", "tokens"])[0] == "sdpa  N^1.0"
    speedup = main(drawn["speedup", "tokens"])
    assert {*series(speedup)} == {"sdpa"}
    assert any({*np.asarray(line.get_ydata())} == {1.0} for line in speedup.lines)
    assert "99% interval, 3 processes" in words(drawn["speedup", "tokens"])


def test_names_do_not_overlap() -> None:
    """Nor does any other text, though ten lines end at nearly the same time; names are in the order of the ends."""
    names = ["eager", *(f"mine:{'kernel' * number}" for number in range(1, 10))]
    drawn = pictures(timed(FOUR, {name: 1e-3 * (1 + 0.001 * at) for at, name in enumerate(names)}))
    last = {name: at[-1][1] for name, at in series(main(drawn["latency", "tokens"])).items()}
    written = [name.split()[0] for name in ends(drawn["latency", "tokens"])]
    assert [name.partition("…")[0] for name in written] == [
        name[: len(end.partition("…")[0])]
        for name, end in zip(sorted(names, key=last.__getitem__), written, strict=True)
    ]
    assert max(map(len, written)) == LONGEST_NAME
    assert [overlaps(picture) for picture in drawn.values()] == [[]] * len(drawn)


def test_what_failed_is_told_below() -> None:
    """A line ends before it, or is broken there; those without any time are named together."""
    lost: dict[Case, Fate] = {Case(at, name): ("unsupported", "no") for at in FOUR for name in ("mha", "flex")}
    lost |= {Case(at, "eager"): ("oom", "") for at in FOUR[2:]} | {Case(FOUR[1], "sdpa"): ("error", "")}
    latency = tokens(lost, (*NAMES, "mha", "flex"))["latency", "tokens"]
    assert {"oom: eager at 577 and 1024", "unsupported: mha, flex"} <= {*re.split(" · |\n", words(latency))}
    assert [x for x, _ in series(main(latency))["eager"]] == [50, 197]
    assert {name.split()[0] for name in ends(latency)} == {*NAMES}
    line = next(each for each in main(latency).lines if each.get_label() == "sdpa")
    assert [bool(y == y) for y in np.asarray(line.get_ydata())] == [True, False, True, True]
