"""A self-check in the terminal: numbers, and what they mean in plain words."""

import dataclasses

from bench.analyse.selfcheck import Finding
from bench.show.terminal.console import render, rendered
from bench.show.terminal.selfcheck import blocks, progress_line
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


def shown(*findings: Finding) -> str:
    """Return what a terminal shows."""
    return rendered(render(blocks(findings)))


def test_points_and_numbers_of_threads_are_rows() -> None:
    """A copy's ratio to eager has four decimals, where it differs from 1; detectable changes stand by processes."""
    lines = [line.split() for line in shown(ONE, TWO).splitlines()]
    assert lines[1] == ["H=3", "1", "thread", "1.0000x", "[0.9989,", "1.0011]", "10"]
    assert sum("1.0000x" in line for line in lines) == 3
    assert ["1", "thread", "2.1%", "1.6%", "1.4%", "1.2%"] in lines
    assert ["2", "threads", "20%", "12%", "8.0%", "6.0%"] in lines


def test_it_says_in_words_what_can_be_claimed() -> None:
    """A noisy number of threads gets a warning, and so do few processes; no claim holds if a copy differs too much."""
    text = shown(ONE, TWO)
    assert "1 thread, 10 processes: a change of 1.4% or more can be claimed" in text
    assert text.count("That is coarse") == 1
    assert text.count("Minutes apart, ratios differ by 2.5%") == 1
    assert text.count("more --processes narrows") == text.count("a larger --budget-s narrows") == 1
    assert not any(words in text for words in ("no claim holds", "Time allowed fewer than 10 processes"))
    assert "Time allowed fewer than 10 processes" in shown(dataclasses.replace(ONE, processes=4))
    assert "no claim holds" in shown(ONE, dataclasses.replace(TWO, is_sound=False))
    assert progress_line(3, 10, 62.0) == " 3 of 10 processes, 1m02s"
