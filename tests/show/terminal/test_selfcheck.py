"""A self-check in the terminal: numbers, and what they mean in plain words."""

import dataclasses

from bench.analyse.selfcheck import CLAIM, Finding, findings
from bench.show.terminal.console import rendered
from bench.show.terminal.selfcheck import progress_line, render
from bench.stats.power import TABLES
from tests.points import point

QUIET = [0.001, -0.001, 0.002, 0.0, -0.002] * 2
NOISY = [60 * value for value in QUIET]
APART = [[[0.0, 0.001], [0.05, 0.051], [0.02, 0.021]]]
ONE, TWO = findings(
    {point(): QUIET, point(num_heads=4): QUIET, point(threads=2): NOISY},
    {point(threads=2): APART},
    {point(): [0.0005] * 10, point(threads=2): [0.08] * 10},
)


def shown(*found: Finding) -> str:
    """Return what a terminal shows."""
    return rendered(render(found))


def test_every_point_is_a_row_with_its_ratio_and_scatter() -> None:
    """The copy's ratio to eager has four decimals, because that is where it differs from 1."""
    lines = shown(ONE, TWO).splitlines()
    assert lines[1].split()[:5] == ["H=3", "1", "thread", "1.0000x", "[0.9989,"]
    assert lines[1].split()[-2:] == ["0.15%", "10"]
    assert len([line for line in lines if "1.0000x" in line]) == 3


def test_what_is_detected_is_a_row_for_each_number_of_threads() -> None:
    """From 3 to 20 processes, and the false alarms of rows in which nothing changed."""
    said = shown(ONE, TWO)
    (row,) = [line for line in said.splitlines() if line.endswith(f"of {2 * TABLES} rows")]
    assert row.startswith("1 thread")
    assert len([word for word in row.split() if word.endswith("%")]) == 4


def test_it_says_in_words_what_can_be_claimed() -> None:
    """A quiet number of threads gets its claim, a noisy one a warning too; few processes don't know their scatter."""
    text = shown(ONE, TWO)
    assert all(words in text for words in ("1 thread, 10 processes: a change of 1.4%", "(within 2%) in 100%"))
    assert text.count("That is coarse") == 1
    assert text.count("Minutes apart, ratios differ by") == 1
    assert text.count("more --processes narrows") == text.count("a larger --budget-s narrows") == 1
    assert not any(words in text for words in ("raised an alarm", "Time allowed fewer than 10 processes"))
    assert "Time allowed fewer than 10 processes" in shown(dataclasses.replace(ONE, processes=4))
    assert progress_line(3, 10, 62.0) == " 3 of 10 processes, 1m02s"


def test_alarms_beyond_the_level_are_said() -> None:
    """Then no claim holds, whatever would be detected."""
    alarmed = dataclasses.replace(ONE.redrawn[CLAIM], tables_with_alarm=TABLES // 20)
    text = shown(dataclasses.replace(ONE, redrawn={**ONE.redrawn, CLAIM: alarmed}))
    assert "raised an alarm in 5.0% of cases" in text
    assert "no claim holds" in text
