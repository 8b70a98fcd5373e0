"""What makes the numbers of a run doubtful."""

import math
import re

import pandas as pd
import pytest

from bench.plan.case import CONTROL, Case
from bench.show.doubts import control_warning, sentences
from tests.make.points import vit_s
from tests.make.records import record, samples
from tests.make.results import results, summarise, timed

CASES = [Case(vit_s(num_tokens=50), name) for name in ("eager", "sdpa")]
LOST = Case(vit_s(num_tokens=50), CONTROL)
BUSY = samples(1.0, 1.0, switches=(99, 99))


def controlled(factor: float, *tokens: int) -> pd.DataFrame:
    """Return results in which the control takes this many times as long as the baseline at the last of these tokens."""
    points = [vit_s(num_tokens=each) for each in tokens]
    slow = {CONTROL: lambda at: 0.01 * (factor if at == points[-1] else 1.0)}
    return timed(points, {"eager": 0.01, "sdpa": 0.005, **slow})


DOUBTS = [
    (results(CASES), []),
    (controlled(1.0, 50, 197), []),
    (summarise([record(case=case, process=n, samples=BUSY, calls_per_timing=1) for case in CASES for n in range(2)],
        "eager"), ["Other processes disturbed 2 of 2 cases. "]),
    (controlled(1.2, 50, 197, 577), ["Two runs of eager differ by up to "]),
    (results(CASES, processes=1), ["One process gives no interval. Use --processes 2"]),
    (results([*CASES, LOST], {LOST: ("error", "no")}), ["The control, which runs the baseline again, failed at 1 "]),
    (results(CASES, dict.fromkeys(CASES, ("oom", ""))), []),
    (results(CASES).assign(throttle="software power cap"), ["2 cases: the GPU held its clock down"]),
]  # fmt: skip
"""Results, and how each sentence on them begins."""


@pytest.mark.parametrize(("whole", "begins"), DOUBTS, ids=[" ".join(begins)[:30] for _, begins in DOUBTS])
def test_each_doubt_is_a_sentence_that_says_what_helps(whole: pd.DataFrame, begins: list[str]) -> None:
    """A quiet machine and two runs of the baseline that agree need no word."""
    assert [text.startswith(begin) for text, begin in zip(sentences(whole), begins, strict=True)] == [True] * len(
        begins
    )


@pytest.mark.parametrize(
    ("factor", "tokens", "words"),
    [
        (1.5, (50, 197, 577), r"differ by up to (4[7-9]|5[0-3])% \(N=577\), more than"),
        (1 / 1.5, (50, 197, 577), r"differ by up to (4[7-9]|5[0-3])% \(N=577\), more than"),
        (math.e, (50,), r"differ by up to 17\d%, more than"),
    ],
)
def test_a_control_that_differs_is_a_warning_with_its_point(factor: float, tokens: list[int], words: str) -> None:
    """Faster or slower, the difference is a ratio above 1, and an only point needs no name."""
    assert re.search(words, control_warning(controlled(factor, *tokens)))
