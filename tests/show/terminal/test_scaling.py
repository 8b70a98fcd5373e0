"""Fits and exponents in the terminal."""

import re

import pandas as pd
import pytest

from bench.plan.case import Case
from bench.show.terminal import scaling
from bench.show.terminal.console import rendered
from tests.make.points import vit_s
from tests.make.results import Fate, quick, results

TOKENS = [vit_s(num_tokens=number) for number in (50, 197, 577, 1024)]
NAMES = ("eager", "sdpa", "online")


def table(fates: dict[Case, Fate] | None = None, processes: int = 3, places: int = 4) -> pd.DataFrame:
    """Return results of three implementations along the tokens."""
    return results([Case(at, name) for at in TOKENS[:places] for name in NAMES], fates, processes)


def shown(of: pd.DataFrame, width: int = 180) -> str:
    """Return what a console of this width shows of the series of a table."""
    return rendered(scaling.blocks(scaling.series(of), width), width=width)


def line_of(text: str, start: str) -> str:
    """Return the first line that starts so."""
    return next(line for line in text.splitlines() if line.startswith(start))


def test_coefficients_and_exponents_stand_by_implementation() -> None:
    """A row has a, b and c with their intervals, the deviation, and both exponents at the largest places."""
    text = shown(table())
    heading = line_of(text, "        a")
    for word in ("b per token", "c per pair", "off by", "latency exponent 577 to 1024", "memory exponent 577 to 1024"):
        assert word in heading
    row = line_of(text, "eager")
    # the made-up peaks are 384 N² + 36,864 N bytes, 149.1 and 440.4 MB: ln(2.954) / ln(1.775) = 1.89
    assert row.endswith(" 1.89")
    assert row.count("[") == 4
    assert " µs [" in row
    assert " ns [" in row


def test_each_series_has_its_heading() -> None:
    """`quick` has one series of tokens, two of heads and one of channels, each with what is fixed in it."""
    lines = shown(quick()).splitlines()
    starts = ("tokens N = ", "heads H = ", "channels C = ")
    headings = [(line, lines[number + 1]) for number, line in enumerate(lines) if line.startswith(starts)]
    assert [heading for heading, _ in headings] == [
        "tokens N = 50, 197, 577, 1024",
        "heads H = 1, 3, 6, 12",
        "heads H = 1, 4",
        "channels C = 96, 192, 384, 768",
    ]
    assert "C=384 · H=6" in headings[0][1]
    assert "N=" not in headings[0][1]
    assert "C=49→64" in headings[2][1]


def test_what_to_use_at_each_place_is_named() -> None:
    """Places with the same name stand together, with all that are as good."""
    cases = [*(Case(at, name) for at in TOKENS for name in NAMES), Case(TOKENS[0], "compiled_sdpa")]
    text = shown(results(cases, processes=10))
    assert "to use at N: 50 sdpa or compiled_sdpa · 197 to 1024 sdpa (fastest)" in text


def test_keys_at_one_query_have_a_line_and_what_to_use() -> None:
    """The series is that of keys, its fit has no pairs, and the legend says what it means."""
    points = [
        vit_s(layer="core", num_tokens=1, num_kv_tokens=keys, batch=1, num_heads=6) for keys in (512, 1024, 2048, 8192)
    ]
    text = shown(results([Case(at, name) for at in points for name in NAMES], processes=5))
    assert "keys M = 512, 1024, 2048, 8192" in text
    assert "b per key" in text
    assert "c per pair" not in text
    assert "to use at M: " in text
    assert "a + b·M" in text


def test_what_lacks_processes_or_places_is_said() -> None:
    """Values stand alone, with advice; a fit needs three places, and what lacks them says so."""
    text = shown(table(processes=1))
    assert "[" not in line_of(text, "eager")
    assert line_of(text, "to use at N") == "to use at N: 50 to 1024 sdpa"
    assert "1 process, so no intervals: measure with more --processes" in text
    two = shown(table(places=2))
    assert [words in two for words in ("no fit: it needs 3 places", "latency exponent 50 to 197")] == [True, True]
    assert "off by  " not in two.split("no fit")[0]
    three = line_of(shown(table(places=3)), "eager")
    assert " 0% " in three
    assert "0.0000" not in three
    lost_two, lost_one = ({Case(at, "eager"): ("oom", "") for at in TOKENS[places:]} for places in (2, 1))
    row = line_of(shown(table(lost_two)), "eager")
    assert "3 places needed" in row
    assert row.count("from 50 to 197") == 2
    assert line_of(shown(table(lost_one)), "eager").count("2 places needed") == 2


@pytest.mark.parametrize("width", [72, 80, 100, 140])
def test_it_fits_the_terminal(width: int) -> None:
    """No line is wider than the terminal, no word is cut, and no interval is torn."""
    text = shown(quick(), width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "…" not in text
    assert text.count("[") == len(re.findall(r"\[[^][\n]*\]", text))
