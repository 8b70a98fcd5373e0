"""What to use, in words: at a point and over a run."""

import math
from collections.abc import Callable, Sequence

import pandas as pd
import pytest

from bench.analyse.standing import ALONE, FASTEST, NAMED, NOT_TOLD, NOTHING, UNDECIDED, Choice
from bench.plan.case import Case, Point
from bench.plan.sweep import Sweep
from bench.show.answer import answer, certainty, points_of, speedup_cell, words
from tests.make.points import vit_s
from tests.make.results import results, timed

AT = [vit_s(num_tokens=tokens) for tokens in (50, 197, 577)]
CASES = [Case(at, name) for at in AT for name in ("eager", "sdpa")]
OOM = ("oom", "")


@pytest.mark.parametrize(
    ("choice", "said", "sure"),
    [
        (Choice(FASTEST, "sdpa", 1.0), "sdpa, fastest", 1.0),
        (Choice(NAMED, "sdpa", 1.0041, ("mha",)), "sdpa, within 0.5%", 0.957),
        (Choice(UNDECIDED, "sdpa", 1.131, ("mha",)), "not decided: sdpa or mha (within 14%)", 0.0),
        (Choice(UNDECIDED, "sdpa", math.nan, ("mha", "eager")), "not decided: sdpa or 2 others (no bound)", 0.0),
        (Choice(ALONE, "sdpa"), "sdpa (only one measured)", 0.0),
        (Choice(NOTHING), NOTHING, 0.0),
        (Choice(NOT_TOLD), NOT_TOLD, 0.0),
    ],
)
def test_a_choice_is_one_phrase(choice: Choice, said: str, sure: float) -> None:
    """A bound is rounded up, because it bounds; what isn't decided has no colour on a map."""
    assert words(choice) == said
    assert certainty(choice) == pytest.approx(sure, abs=1e-3)


def lead_of(*ratios: float) -> pd.DataFrame:
    """Return a table with a point for each ratio of sdpa's time to eager's."""
    many = [vit_s(num_tokens=50 + number) for number in range(len(ratios))]
    return timed(many, {"eager": 1.0, "sdpa": lambda at: ratios[at.num_tokens - 50]}, processes=5)


def lost(*numbers: int, processes: int = 3) -> pd.DataFrame:
    """Return results of CASES; these have no time."""
    return results(CASES, {CASES[number]: OOM for number in numbers}, processes)


def fast_at(place: int) -> Callable[[Point], float]:
    """Return what takes a third of its time at one of AT."""
    return lambda at: 1.0 if at == AT[place] else 3.0


RUNS: list[tuple[Callable[[], pd.DataFrame], Sequence[str]]] = [
    (lambda: timed(AT, {"eager": 2.0, "sdpa": 1.0}), ["Use sdpa: the fastest at all 3 points, 2.0"]),
    (lambda: timed(AT, {"eager": 1.0, "sdpa": 2.0}), ["Use eager: the fastest at all 3 points."]),
    (
        lambda: lead_of(0.1, 0.1, 0.1, 0.1, 1.8, 1.6, 1.9, 1.1),
        ["Use sdpa: the fastest at 4 of 8 points", "Except N=56: eager (sdpa takes 1."],
    ),
    (
        lambda: timed(AT[:2], {"eager": fast_at(0), "sdpa": fast_at(1)}),
        ["Use eager: the fastest at 1 of 2 points.", "Except N=197: sdpa (eager takes "],
    ),
    (lambda: lost(0, 2, 4), ["Nothing was compared: only sdpa was measured."]),
    (lambda: lost(processes=1), ["Not decided at any point."]),
    (lambda: results(CASES[:2], dict.fromkeys(CASES, OOM)), ["Nothing was measured: none of 2 cases is ok."]),
    (lambda: timed(AT[:1], {"eager": 2.0, "sdpa": 1.0}), ["Use sdpa: the fastest, "]),
    (lambda: results(CASES[:2], processes=1), ["Not decided: sdpa or eager (no bound)."]),
]
"""Results, and how each sentence on them begins; tests/show/test_sentences.py checks the numbers."""


@pytest.mark.parametrize(("of", "begins"), RUNS)
def test_a_run_is_answered_in_at_most_three_sentences(of: Callable[[], pd.DataFrame], begins: Sequence[str]) -> None:
    """They say what to use, where another is faster, and what is undecided; a headline names only decided ones."""
    said = answer(points_of(of()), "eager")
    assert len(said) == len(begins) <= 3
    assert all(text.startswith(begin) for text, begin in zip(said, begins, strict=True)), said


def test_points_that_wait_are_counted() -> None:
    """An interrupted sweep is answered by the points that were measured, of how many it was to have."""
    planned = Sweep("mine", (*AT, *(vit_s(num_tokens=number) for number in range(1000, 1997))), ("eager", "sdpa"))
    of = points_of(timed(AT, {"eager": 2.0, "sdpa": 1.0}), planned)
    assert answer(of, "eager")[0].startswith("Use sdpa: the fastest at 3 of 1000 points")
    (at,) = [at for at in of if at.label == "N=1500"]
    assert (at.rows, at.cases, at.waits, at.choice.standing) == ((), 2, 2, NOTHING)


def test_each_kind_of_device_and_each_timing_has_an_answer() -> None:
    """None is chosen for several."""
    points = [vit_s(device="cuda", timing=timing) for timing in ("device-cold", "host")] + [vit_s()]
    said = answer(points_of(timed(points, {"eager": 2.0, "sdpa": 1.0})), "eager")
    assert [text.partition(":")[0].split(",")[0] for text in said] == ["On the GPU", "On the GPU", "On the CPU"]


def test_a_ratio_that_other_processes_disturbed_is_not_told() -> None:
    """Short calls fit between two time slices of other processes, long ones don't; the baseline has no ratio."""
    first = points_of(timed(AT[:1], {"eager": 2.0, "sdpa": 1.0}))[0].first
    assert first
    assert speedup_cell(first, "eager").startswith("2.0")
    assert speedup_cell({**first, "flagged_share": 0.6}, "eager") == "disturbed"
    assert (speedup_cell(first, "sdpa"), speedup_cell(None, "eager")) == ("baseline", "")
    busy = timed(AT, {"eager": 2.0, "sdpa": 1.0}).assign(flagged_share=0.6)
    assert answer(points_of(busy), "eager") == ["Use sdpa: the fastest at all 3 points."]
