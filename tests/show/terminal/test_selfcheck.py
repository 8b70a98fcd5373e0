"""A self-check in the terminal: numbers, and what they mean in plain words."""

import dataclasses

from bench.analyse.selfcheck import Finding
from bench.show.terminal.console import rendered
from bench.show.terminal.selfcheck import progress_line, render
from bench.stats.between_runs import BetweenRuns
from bench.stats.estimates import Interval
from tests.points import point

RATIO = Interval(1.0, 0.99891, 1.00109)
ONE = Finding(
    threads=1,
    processes=10,
    ratios={point(): RATIO, point(num_heads=4): RATIO},
    between_runs=BetweenRuns(0.0, 4.0),
    rounds_share=0.3,
    detectable={3: 0.021, 5: 0.016, 10: 0.014, 20: 0.012},
    is_sound=True,
)
TWO = dataclasses.replace(
    ONE,
    threads=2,
    ratios={point(threads=2): RATIO},
    between_runs=BetweenRuns(0.025, 2.0),
    rounds_share=0.8,
    detectable={3: 0.2, 5: 0.12, 10: 0.08, 20: 0.06},
)


def shown(*found: Finding) -> str:
    """Return what a terminal shows."""
    return rendered(render(found))


def test_every_point_is_a_row_with_its_ratio_and_processes() -> None:
    """The copy's ratio to eager has four decimals, because that is where it differs from 1."""
    lines = shown(ONE, TWO).splitlines()
    assert lines[1].split() == ["H=3", "1", "thread", "1.0000x", "[0.9989,", "1.0011]", "10"]
    assert len([line for line in lines if "1.0000x" in line]) == 3


def test_what_is_detected_is_a_row_for_each_number_of_threads() -> None:
    """From 3 to 20 processes."""
    lines = [line.split() for line in shown(ONE, TWO).splitlines()]
    assert ["1", "thread", "2.1%", "1.6%", "1.4%", "1.2%"] in lines
    assert ["2", "threads", "20%", "12%", "8.0%", "6.0%"] in lines


def test_it_says_in_words_what_can_be_claimed() -> None:
    """A quiet number of threads gets its claim, a noisy one a warning too; few processes don't know their scatter."""
    text = shown(ONE, TWO)
    assert "1 thread, 10 processes: a change of 1.4% or more can be claimed" in text
    assert text.count("That is coarse") == 1
    assert text.count("Minutes apart, ratios differ by 2.5%") == 1
    assert text.count("more --processes narrows") == text.count("a larger --budget-s narrows") == 1
    assert not any(words in text for words in ("no claim holds", "Time allowed fewer than 10 processes"))
    assert "Time allowed fewer than 10 processes" in shown(dataclasses.replace(ONE, processes=4))
    assert progress_line(3, 10, 62.0) == " 3 of 10 processes, 1m02s"


def test_a_copy_that_differs_too_much_is_said() -> None:
    """Then no claim holds, whatever would be detected."""
    assert "no claim holds" in shown(ONE, dataclasses.replace(TWO, is_sound=False))
