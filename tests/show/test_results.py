"""The table of results."""

import re
from typing import Any

import pandas as pd
import pytest

from bench.analyse.flags import THROTTLED
from bench.plan.case import CONTROL, Case
from bench.show import columns
from bench.show.results import results as table_of
from bench.show.terminal.console import rendered
from tests.make.points import vit_s
from tests.make.results import Fate, quick, results, timed

NAMES = ("eager", "sdpa", "compiled_sdpa", "mha")
AT = (vit_s(), vit_s(num_tokens=50))
LONG = "mypackage.kernels.attention:blocked_attention"


def cases() -> list[Case]:
    """Return a few cases of two points."""
    return [Case(at, name) for at in AT for name in NAMES]


def blocks(table: pd.DataFrame, whole: pd.DataFrame | None = None) -> list[Any]:
    """Return the results with their default columns."""
    return [*table_of(table, columns.default("eager"), table if whole is None else whole)]


def shown(table: pd.DataFrame, width: int = 100, *, colour: bool = False) -> str:
    """Return the results as a console of this width shows them."""
    return rendered(blocks(table), width=width, colour=colour)


def line_with(text: str, words: str) -> str:
    """Return the first line that holds these words."""
    return next(line for line in text.splitlines() if words in line)


def test_a_row_has_what_a_reader_compares() -> None:
    """Below its point, the fastest first: latency, ratio to the baseline, bound, memory, kernels."""
    fates: dict[Case, Fate] = {Case(AT[1], "mha"): ("oom", "80 GiB")}
    table = results(cases(), fates).assign(kernels="mm;bmm")
    head, about, _, title, headings, first, *rest = shown(table).splitlines()
    assert "vit" in head
    assert "N=" not in head
    assert "A CPU" in about
    assert re.fullmatch(r"N=197: sdpa, within [\d.]+%", title)
    assert headings.split() == ["implementation", "latency", "vs", "eager", "within", "memory", "ran"]
    assert re.match(r"  sdpa +[\d.]+ ms ±[\d.]+% +[\d.]+x \[.*\] +[\d.]+% +11.5 MiB  products", first)
    assert "baseline" in line_with("\n".join(rest), "  eager ")
    assert [line.split() for line in rest if line.startswith("  mha")][-1][:2] == ["mha", "oom"]


def test_a_letter_beside_a_row_is_explained() -> None:
    """Only letters that a row has."""
    table = results(cases()[:4])
    table.loc[1, "throttle"] = "hardware slowdown"
    text = shown(table)
    assert line_with(text, "  sdpa ").endswith("  T")
    assert re.search(rf"\nT +{THROTTLED.meaning[:30]}", text)
    assert "launch-bound" not in text


def test_a_run_whose_control_differs_begins_with_that() -> None:
    """Also if the rows that are shown are others; the control stands in no table, and a right one is not said."""
    off, right = (timed([vit_s()], {"eager": 0.02, "sdpa": 0.01, CONTROL: control_s}) for control_s in (0.015, 0.02))
    first, *rest = shown(off).splitlines()
    assert first.startswith("Two runs of eager differ")
    assert CONTROL not in " ".join(line for line in rest if "0 ms" in line)
    some = off.query("implementation == 'sdpa'")
    assert rendered(blocks(some, off)).startswith("Two runs of eager differ")
    assert "Two runs" not in shown(right) + shown(some)


def test_the_growth_of_each_series_stands_at_the_end() -> None:
    """The made-up peaks are 384 N² + 36,864 N bytes, 149.1 and 440.4 MB: ln(2.954) / ln(1.775) is 1.89."""
    table = results(Case(vit_s(num_tokens=number), "eager") for number in (50, 577, 1024))
    growth = shown(table).partition("Growth")[2].splitlines()
    assert [line.split()[-1] for line in growth if "tokens N 577 to 1024" in line] == ["N^1.9"]
    growth = shown(quick()).partition("Growth")[2].splitlines()
    assert len({line.split("  ")[1] for line in growth if line.startswith("  ")} - {"series"}) == 4
    assert "Growth" not in shown(results(cases()[:4]))


def test_the_head_of_a_gpus_table_has_its_state() -> None:
    """Clocks, power and temperature of the rows, and what held the clock down; no threads."""
    table = timed([vit_s(device="cuda", timing="device-cold", threads=15)], {"eager": 2.0, "sdpa": 1.0}).assign(
        clock_low_hz=[1.9e9, 1.755e9],
        clock_high_hz=[1.98e9, 1.9e9],
        power_w=[640.2, 500],
        temperature_c=[61, 70.0],
        throttle=["software power cap", "software power cap;hardware slowdown"],
    )
    said = " ".join(shown(table, 200).split())
    assert "clock 1,755 to 1,980 MHz, at most 640 W, at most 70 °C" in said
    assert "held down by software power cap and hardware slowdown" in said
    assert "15 threads" not in said


@pytest.mark.parametrize("width", [60, 80, 100, 180])
def test_it_fits_the_terminal(width: int) -> None:
    """No line is wider; whole names, latencies, ratios and bounds are there at any width, all columns at 100."""
    table = results([*cases(), Case(AT[0], LONG)]).assign(kernels="CompiledFxGraph;bmm")
    text = shown(table, width)
    assert max(len(line) for line in text.splitlines()) <= width
    for word in (*NAMES, "latency", "vs eager", "within"):
        assert word in text
    assert LONG in "".join(line[2:].split("  ")[0] for line in text.splitlines())
    assert "products + compiled" in shown(results(cases()).assign(kernels="CompiledFxGraph;bmm"))


@pytest.mark.parametrize("status", ["oom", "unsupported"])
def test_a_table_in_which_all_failed_can_be_shown(status: str) -> None:
    """Without a single time there is still a table; without a row it is said to be empty."""
    text = shown(results(cases(), dict.fromkeys(cases(), (status, ""))))
    assert text.count("nothing was measured") == 2
    assert len(re.findall(rf"  {status}$", text, re.MULTILINE)) == 8
    assert shown(results(cases()).iloc[:0]) == "no results\n"
