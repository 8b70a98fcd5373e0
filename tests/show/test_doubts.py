"""What makes the numbers of a run doubtful."""

import math
import re

import pandas as pd
import pytest

from bench.analyse.summary import summarise
from bench.plan.case import CONTROL, Case
from bench.show.answer import points_of
from bench.show.doubts import control_noise, control_warning, machine, warnings
from tests.examples import point, record
from tests.examples import timed as samples
from tests.show.example_results import results, timed

AT = [point(num_tokens=tokens) for tokens in (50, 197, 577)]


def test_a_machine_is_quiet_busy_or_slow() -> None:
    """A busy one had half of its samples disturbed, a slow one half of its speed; each warning is counted once."""
    fair = timed(AT, {"eager": 1.0, "sdpa": 1.0})
    assert machine(fair)[0]
    is_quiet, words = machine(fair.assign(compute_speed=0.5))
    assert not is_quiet
    assert words.startswith("The machine was slow. In 6 of 6 measured cases it ran at less than 75 %")
    assert "disturbed" not in words
    busy = samples(1.0, 1.0, switches=(99, 99))
    records = [record(case=Case(AT[0], name), samples=busy, calls_per_timing=1) for name in ("eager", "sdpa")]
    is_quiet, words = machine(summarise(records, "eager"))
    assert not is_quiet
    assert "disturbed a quarter of the samples or more in 2 of 2 measured cases" in words
    one = [
        record(case=Case(AT[0], name), samples=samples(1.0, 1.0), calls_per_timing=1, settled=True)
        for name in ("eager", "sdpa")
    ]
    assert list(map(str, warnings(summarise(one, "eager")))) == [
        "2 of 2 measured cases: one process only, so no interval"
    ]
    cases = [Case(AT[0], name) for name in ("eager", "sdpa")]
    assert machine(results(cases, dict.fromkeys(cases, ("oom", "no memory")))) == (True, "")


# The control


def controlled(factor: float, *tokens: int) -> pd.DataFrame:
    """Return results in which the control takes this many times as long as the baseline at the last of these tokens."""
    points = [point(num_tokens=each) for each in tokens]
    slow = {CONTROL: lambda at: 0.01 * (factor if at == points[-1] else 1.0)}
    return timed(points, {"eager": 0.01, "sdpa": 0.005, **slow})


def test_the_control_is_no_implementation_of_the_answer() -> None:
    """It has no row there; the sentence on the machine says by how much it differed, and a right one is no warning."""
    (at,) = points_of(controlled(1.0, 50))
    assert {row["implementation"] for row in at.rows} == {"eager", "sdpa"}
    is_quiet, words = machine(controlled(1.2, 50, 197, 577))
    assert not is_quiet
    assert words.startswith("The machine was not quiet. Identical code differs here by more than ")
    assert not machine(controlled(1.001, 50, 197, 577))[1].endswith("disturbed.")
    right = controlled(1.0, 50, 197)
    noise = re.fullmatch(r"a second eager differed from the first by up to ([\d.]+)% \(N=\d+\)", control_noise(right))
    assert noise
    assert 0 < float(noise[1]) < 2
    assert control_warning(right) == ""
    without = timed([point()], {"eager": 0.01, "sdpa": 0.005})
    assert control_noise(without) == control_warning(without) == ""


@pytest.mark.parametrize(
    ("factor", "tokens", "words"),
    [
        (1.5, (50, 197, 577), r"first by up to (4[7-9]|5[0-3])% \(N=577\); so all intervals and bounds are"),
        (1 / 1.5, (50, 197, 577), r"first by up to (4[7-9]|5[0-3])% \(N=577\); so all intervals and bounds are"),
        (math.e, (50,), r"first by up to 17\d%; so"),
    ],
)
def test_a_control_that_differs_is_a_warning_with_its_point(factor: float, tokens: list[int], words: str) -> None:
    """Faster or slower, the difference is a ratio above 1, and all bounds are wider; an only point needs no name."""
    assert re.search(words, control_warning(controlled(factor, *tokens)))
