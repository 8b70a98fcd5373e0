"""What makes the numbers of a run doubtful."""

import math
import re

import pandas as pd
import pytest

from bench.analyse.summary import summarise
from bench.plan.case import CONTROL, Case
from bench.show.answer import points_of
from bench.show.doubts import advice, control_noise, control_warning, machine, warnings
from tests.make.points import vit_s
from tests.make.records import record, samples
from tests.make.results import results, timed

CASES = [Case(vit_s(num_tokens=50), name) for name in ("eager", "sdpa")]
BUSY = samples(1.0, 1.0, switches=(99, 99))


def controlled(factor: float, *tokens: int) -> pd.DataFrame:
    """Return results in which the control takes this many times as long as the baseline at the last of these tokens."""
    points = [vit_s(num_tokens=each) for each in tokens]
    slow = {CONTROL: lambda at: 0.01 * (factor if at == points[-1] else 1.0)}
    return timed(points, {"eager": 0.01, "sdpa": 0.005, **slow})


FAIR = results(CASES)
DIFFERS = "a second eager differed from the first by up to #%"
EXPLAINS = f"dentical code differs here by more than rounds and processes explain: {DIFFERS}"
WIDE = "so all intervals and bounds are # times as wide"

MACHINES = [
    (FAIR, "The machine was quiet: at most #% of the samples of a case were disturbed."),
    (controlled(1.0, 50, 197),
        f"The machine was quiet: at most #% of the samples of a case were disturbed; {DIFFERS} (N=#)."),
    (summarise([record(case=case, samples=BUSY, calls_per_timing=1) for case in CASES], "eager"), "The machine was not "
        "quiet. Other processes disturbed a quarter of the samples or more in 2 of 2 measured cases."),
    (controlled(1.2, 50, 197, 577), f"The machine was not quiet. I{EXPLAINS} (N=577); {WIDE}."),
    (results(CASES, dict.fromkeys(CASES, ("oom", ""))), ""),
]  # fmt: skip
"""Results, and what is said of the machine; # stands for a number."""


@pytest.mark.parametrize(("table", "sentence"), MACHINES, ids=[sentence[:30] for _, sentence in MACHINES])
def test_each_machine_has_its_sentence(table: pd.DataFrame, sentence: str) -> None:
    """A busy machine and identical code that differs are not quiet; nobody knows it of no time."""
    is_quiet, said = machine(table)
    assert re.fullmatch(re.escape(sentence).replace(r"\#", r"[\d.]+"), said), said
    assert is_quiet == (" quiet:" in sentence or not sentence)


def test_a_gpu_has_a_sentence_of_its_own() -> None:
    """Its clock is said and not the samples that other processes of the host disturbed; the CPU keeps its sentence.

    What the control says belongs to the kind at whose point it was.
    """
    on_gpu = vit_s(num_tokens=50, device="cuda", timing="device-cold")
    names = {"eager": 0.01, "sdpa": 0.005, CONTROL: 0.01}
    hertz = {"eager": 1.755e9, "sdpa": 1.98e9, CONTROL: 1.8e9}
    of_gpu = timed([on_gpu], names)
    of_gpu["clock_low_hz"] = of_gpu["clock_high_hz"] = of_gpu["implementation"].map(hertz)
    is_quiet, said = machine(of_gpu)
    assert is_quiet
    assert said.startswith("The GPU: clock 1,755 to 1,980 MHz; a second eager differed from the first by up to ")
    both = pd.concat([FAIR, of_gpu[of_gpu["implementation"] != CONTROL]])
    assert machine(both)[1] == f"{machine(FAIR)[1]} The GPU: clock 1,755 to 1,980 MHz."
    with_control = machine(pd.concat([FAIR, of_gpu]))[1]
    assert with_control.startswith(f"{machine(FAIR)[1]} The GPU: clock 1,755 to 1,980 MHz; a second eager differed")
    unknown = of_gpu[of_gpu["implementation"] != CONTROL].assign(clock_low_hz=None, clock_high_hz=None)
    assert machine(unknown) == (True, "")


def test_a_gpu_on_which_identical_code_differs_is_not_told_to_be_quiet() -> None:
    """Other processes of the host don't move its times, and neither do launches that take longer than the work."""
    points = [vit_s(num_tokens=tokens, device="cuda", timing="device-cold", threads=15) for tokens in (50, 197, 577)]
    slow = {CONTROL: lambda at: 0.01 * (1.58 if at == points[-1] else 1.0)}
    table = timed(points, {"eager": 0.01, "sdpa": 0.005, **slow}).assign(host_s=0.02, clock_hz=1.98e9)
    is_steady, said = machine(table)
    assert not is_steady
    assert said.startswith("The GPU was not steady. Identical code differs here")
    told = " ".join([said, *advice(table)])
    assert "launch-bound" in told
    assert not re.search("machine|quiet|threads", told)


def test_each_warning_is_counted_once() -> None:
    """It has the number of its rows, and of those that could have it."""
    single = [record(case=case, samples=samples(1.0, 1.0), calls_per_timing=1, settled=True) for case in CASES]
    assert [*map(str, warnings(summarise(single, "eager")))] == [
        "2 of 2 measured cases: one process only, so no interval"
    ]


def test_the_control_is_no_implementation_of_the_answer() -> None:
    """Nobody asks what the baseline takes under another name; a run without it has nothing to say of it."""
    (at,) = points_of(controlled(1.0, 50))
    assert {row["implementation"] for row in at.rows} == {"eager", "sdpa"}
    assert control_warning(controlled(1.0, 50, 197)) == ""
    assert control_noise(FAIR) == control_warning(FAIR) == ""


@pytest.mark.parametrize(
    ("factor", "tokens", "words"),
    [
        (1.5, (50, 197, 577), r"first by up to (4[7-9]|5[0-3])% \(N=577\); so all"),
        (1 / 1.5, (50, 197, 577), r"first by up to (4[7-9]|5[0-3])% \(N=577\); so all"),
        (math.e, (50,), r"first by up to 17\d%; so"),
    ],
)
def test_a_control_that_differs_is_a_warning_with_its_point(factor: float, tokens: list[int], words: str) -> None:
    """Faster or slower, the difference is a ratio above 1, and an only point needs no name."""
    assert re.search(words, control_warning(controlled(factor, *tokens)))
