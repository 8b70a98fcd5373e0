"""The table of results in the terminal."""

import re
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from bench.analyse.flags import THROTTLED
from bench.analyse.summary import summarise
from bench.plan.case import CONTROL, Case, Point
from bench.show.terminal.console import console, render, rendered
from bench.show.terminal.results import results as table_of
from bench.store.record import Samples
from bench.store.roofline import CEILING_BYTES, CEILING_FLOPS
from tests.make.points import vit_s
from tests.make.results import Fate, modelled, quick, results, timed

NAMES = ("eager", "sdpa", "compiled_sdpa", "mha")
AT = (vit_s(), vit_s(num_tokens=50))
LONG = "RuntimeError: " + "the same reason at length, " * 8 + "end"


def cases(at: Point) -> list[Case]:
    """Return a few cases of a point."""
    return [Case(at, name) for name in NAMES]


def some(fates: dict[Case, Fate] | None = None) -> pd.DataFrame:
    """Return results of two points."""
    return results([case for at in AT for case in cases(at)], fates)


def shown(
    table: pd.DataFrame, width: int = 140, baseline: str | None = "eager", *, colour: bool = False, **options: Any
) -> str:
    """Return the results as a console of this width shows them."""
    return rendered(table_of(table, baseline, **options), width=width, colour=colour)


def test_what_to_use_and_by_how_much_others_are_slower_is_said() -> None:
    """Headings name the fastest and its lead; rows have their bounds, and a doubtful one an explained letter."""
    table = timed([vit_s()], {"eager": 0.02, "sdpa": 0.01, "mha": 0.015})
    text = shown(table)
    low, high = map(int, re.findall(r"^fastest: sdpa, by (\d+) to (\d+)%$", text, re.MULTILINE)[0])
    assert 45 <= low < 50 < high <= 55
    for row in table.to_dict("records"):
        low, high = map(int, re.findall(r"(\d+) to (\d+)%", line_with(text, f"  {row['implementation']} "))[0])
        assert low <= 100 * (row["slowdown_low"] - 1) < low + 1
        assert high - 1 < 100 * (row["slowdown_high"] - 1) <= high
    assert "slower by" not in shown(timed([vit_s()], {"eager": 0.02, "sdpa": 0.01}, processes=1))
    assert sum(line.startswith("B=") for line in shown(quick()).splitlines()) == 12
    table = some()
    table.loc[1, "throttle"] = "hardware slowdown"
    text = shown(table)
    assert len([line for line in text.splitlines() if line.split()[:2] == ["sdpa", "T"]]) == 1
    assert re.search(rf"\nT +{THROTTLED.meaning[:30]}", text)


def test_a_run_whose_control_differs_begins_with_that() -> None:
    """Also if the rows that are shown are others; the control stands in no table, and a right one is not said."""
    off, right = (timed([vit_s()], {"eager": 0.02, "sdpa": 0.01, CONTROL: control_s}) for control_s in (0.015, 0.02))
    first, *rest = shown(off).splitlines()
    assert first.startswith("identical code differs here")
    assert CONTROL not in " ".join(line for line in rest if "0 µs" in line)
    some = off.query("implementation == 'sdpa'")
    assert shown(some, whole=off).startswith("identical code differs here")
    assert "identical code" not in shown(right) + shown(some)


def test_a_baseline_that_is_not_known_is_said_to_be_so() -> None:
    """Ratios without what they refer to are shown, and said to be such; without ratios nothing is said."""
    assert "baseline of these speed-ups is not known" in shown(some(), baseline=None)
    assert "not known" not in shown(some())
    without = some({Case(at, "eager"): ("crashed", "signal 9") for at in AT})
    text = shown(without, baseline=None)
    assert [words in text for words in ("not known", "speed-up", "latency")] == [False, False, True]


def test_points_are_counted_and_named_by_the_plan() -> None:
    """One that waits is counted, and what it differs in names the one that was measured, and isn't said of all."""
    table = results(cases(AT[0]), {cases(AT[0])[0]: ("error", "no")})
    head, shared, *rest = shown(table, planned=AT).splitlines()
    assert "failed at 1 of 2 points" in head
    assert "N=197" not in shared
    assert any(line.startswith("N=197 ") for line in rest)


def test_rows_stand_in_the_order_of_their_ratios_within_rounds() -> None:
    """The machine slowed after mha had left the rounds: sdpa was faster in those that both were in."""
    records = []
    for process, drift in enumerate((0.999, 1.0, 1.001)):
        sdpa, mha = (modelled(Case(vit_s(), name), process) for name in ("sdpa", "mha"))
        none = (0,) * 9
        slowing = Samples(tuple(range(9)), tuple((value,) for value in [0.010 * drift] * 4 + [0.030] * 5), none, none)
        leaving = Samples((0, 1, 2, 3), ((0.012,),) * 4, none[:4], none[:4])
        records += [replace(sdpa, samples=slowing), replace(mha, samples=leaving)]
    table = summarise(records, "mha")
    assert table["latency_s"][0] > 2 * table["latency_s"][1]
    assert re.findall("^  (sdpa|mha) ", shown(table), re.MULTILINE) == ["sdpa", "mha"]
    assert "fastest: sdpa, by " in shown(table)


def line_with(text: str, words: str) -> str:
    """Return the first line that holds these words."""
    return next(line for line in text.splitlines() if words in line)


def test_the_head_and_the_rows_say_what_was_measured() -> None:
    """The head has what all points share, a row its intervals, cost and memory; narrow terminals have fewer."""
    lines = shown(results([Case(at, name) for at in AT for name in ("eager", "sdpa")])).splitlines()
    shared = ("vit", "float32", "inference", "B=8", "A CPU", "torch 2.13.0", "intervals over 3 processes")
    assert all(words in " ".join(lines[:2]) for words in shared)
    assert "float32" not in " ".join(lines[2:])
    assert lines[3].startswith("N=197  fastest: sdpa, by ")
    assert re.match(r"  sdpa +[\d.]+ ms +±[\d.]+% +[\d.]+x +\[.*\] +0 to 0% +11.5 MiB", lines[5])
    assert re.match(r"  eager .* baseline ", lines[6])
    alone = shown(results(cases(vit_s()))).splitlines()
    assert "N=197" in alone[0]
    assert alone[3].startswith("use sdpa: ")
    table = some()
    narrow, usual, wide = (shown(table, width) for width in (80, 100, 120))
    assert ["flagged" in text for text in (narrow, usual, wide)] == [False, True, True]
    assert ["peak memory" in text for text in (narrow, usual, wide)] == [False, True, True]
    assert "first compile" not in shown(table)
    table.loc[2, "compile_cold_s"] = 3.2
    assert all(words in shown(table) for words in ("first compile", "3.20 s"))


def test_the_head_of_a_gpus_table_has_its_clock_and_no_threads() -> None:
    """The clock goes from the lowest to the highest of the rows; one that never changed is one number.

    The highest power and temperature are said with it, and once what held it down.
    """
    at = vit_s(device="cuda", timing="device-cold", threads=15)
    table = timed([at], {"eager": 2.0, "sdpa": 1.0})
    table = table.assign(clock_low_hz=[1.9e9, 1.755e9], clock_high_hz=[1.98e9, 1.9e9])
    text = shown(table)
    assert "clock 1,755 to 1,980 MHz" in text
    assert "15 threads" not in text
    assert "clock 1,980 MHz" in shown(table.assign(clock_low_hz=1.98e9, clock_high_hz=1.98e9))
    table = table.assign(
        power_w=[640.2, 500],
        temperature_c=[61, 70.0],
        throttle=["software power cap", "software power cap;hardware slowdown"],
    )
    said = " ".join(shown(table, 200).split())
    assert "MHz, at most 640 W, at most 70 °C, held down by software power cap and hardware slowdown" in said
    assert "T the GPU held its clock down" in said


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_it_fits_the_terminal(width: int) -> None:
    """No line is wider than the terminal, and name, latency, speed-up and reasons are there at any width."""
    text = shown(some({Case(vit_s(), "mha"): ("error", LONG)}), width)
    assert max(len(line) for line in text.splitlines()) <= width
    for word in (*NAMES, "latency", "speed-up", "slower by", "end"):
        assert word in text


@pytest.mark.parametrize("status", ["oom", "unsupported"])
def test_a_table_in_which_all_failed_can_be_shown(status: str) -> None:
    """Without a single time there is still a table, with the reasons; without a row it is said to be empty."""
    everything = {case: (status, "") for at in AT for case in cases(at)}
    text = shown(some(everything))
    assert text.count("nothing was measured") == 2
    assert [line.split() for line in text.splitlines() if status in line] == [["all", "4", status]] * 2
    assert shown(some().iloc[:0]) == "no results\n"


def test_failures_of_a_point_are_gathered_by_their_reason() -> None:
    """The same status and reason are one line below the rows of their point; brackets in it are no markup."""
    fates: dict[Case, Fate] = {Case(at, "sdpa"): ("oom", "80 GiB") for at in AT}
    fates |= {Case(AT[0], "eager"): ("oom", "80 GiB"), Case(AT[0], "mha"): ("unsupported", "no bias")}
    text = shown(some(fates))
    assert [line.split(None, 2)[:2] for line in text.splitlines() if "80 GiB" in line] == [
        ["eager,", "sdpa"],
        ["sdpa", "oom:"],
    ]
    assert "  mha            unsupported: no bias\n" in text
    odd = Case(vit_s(), "mine:kernel")
    assert "[/red] x[0]" in shown(results([*cases(vit_s()), odd], {odd: ("error", "IndexError: [/red] x[0]")}))


def test_colours_are_for_terminals_only(capsys: pytest.CaptureFixture[str]) -> None:
    """What to use stands out in green and what failed in red; a file has none, and room for every column."""
    table = some({Case(vit_s(), "mha"): ("oom", "")})
    console().print(render(table_of(table, "eager")))
    printed = capsys.readouterr().out
    assert ("\x1b" in printed, "flagged" in printed) == (False, True)
    assert "\x1b[31m" in shown(table, colour=True)
    assert "\x1b[1;32m" in shown(results(cases(vit_s()), processes=10), colour=True)


def test_on_a_known_card_its_data_sheet_stands_beside_what_was_seen() -> None:
    """A share in each row of a wide table, and the rates of the card above the points; on a CPU neither."""
    at = vit_s(device="cuda", timing="device-cold", dtype="bfloat16")
    ceilings = {CEILING_FLOPS: 700e12, CEILING_BYTES: 4e12}
    table = timed([at], {"eager": 1e-4, "sdpa": 5e-5}).assign(device_name="NVIDIA H200 140 GiB", **ceilings)
    text = shown(table, 300)
    assert "of data sheet" in text
    assert "71% of the data sheet's 989 TFLOP/s" in text
    assert "data sheet" not in shown(timed([vit_s()], {"eager": 0.02, "sdpa": 0.01}), 300)
