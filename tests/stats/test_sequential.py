"""Looks: what is decided when, and that looking often doesn't make it err often."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from bench.plan.errors import WrongRequest
from bench.stats.estimates import joined, mean
from bench.stats.limits import LEVEL, MARGIN
from bench.stats.sequential import Judgement, check_looks, judge

EDGE = math.log1p(MARGIN)
LOOKS = (5, 10, 20)


def processes(ratio: float, count: int, sd: float = 0.001) -> list[float]:
    """Return log ratios that lie by turns above and below; where their number is odd, the last is in the middle."""
    signs = [*[-1, 1] * (count // 2), *[0] * (count % 2)]
    return [math.log(ratio) + sd * sign for sign in signs]


def judged(*logs: Sequence[float], looks: Sequence[int] = LOOKS) -> list[Judgement]:
    """Return the judgements on rows with these log ratios, one for each process, whose scatter is all that is known."""
    return judge([*map(len, logs)], lambda rows, look: joined(mean(logs[row][:look]) for row in rows), looks)


def verdicts(*logs: Sequence[float], looks: Sequence[int] = LOOKS) -> list[tuple[str, int]]:
    """Return the verdict of each row and the processes of its look."""
    return [(found.verdict, found.processes) for found in judged(*logs, looks=looks)]


@pytest.mark.parametrize(
    ("ratio", "verdict"), [(1.2, "faster"), (0.8, "slower"), (1.0, "equivalent"), (1.009, "equivalent")]
)
def test_what_is_plain_is_decided_at_the_first_look(ratio: float, verdict: str) -> None:
    """Five processes that agree within 0.1 % show a change of a fifth, and that there is none above 2 %."""
    assert verdicts(processes(ratio, 5)) == [(verdict, 5)]


def test_a_row_stays_open_until_the_last_look_and_is_inconclusive_then() -> None:
    """Processes that differ by a tenth show nothing, neither a change nor its absence."""
    noisy = processes(1.0, 20, sd=0.1)
    assert verdicts(noisy[:5]) == [("open", 5)]
    assert verdicts(noisy[:10]) == [("open", 10)]
    assert verdicts(noisy) == [("inconclusive", 20)]


def test_what_was_decided_at_a_look_stays_so() -> None:
    """Values that come later change neither the verdict nor its numbers."""
    first = processes(1.2, 5)
    assert judged(first + [-1.0] * 15) == judged(first)


def test_a_look_is_taken_when_every_open_row_has_its_processes() -> None:
    """With a row still to be measured nothing is judged, because the correction counts all rows of a look."""
    assert verdicts(processes(1.2, 5), processes(1.2, 4)) == [("open", 0), ("open", 0)]
    assert verdicts(processes(1.2, 5), []) == [("faster", 5), ("open", 0)]


def test_a_decided_row_waits_for_nobody() -> None:
    """A row that was decided at five processes needs no more of them for the others to be judged at ten."""
    found = verdicts(processes(1.2, 5), processes(1.0, 10, sd=0.1))
    assert found == [("faster", 5), ("open", 10)]


def test_the_level_is_split_over_the_looks() -> None:
    """A row that a single look at ten processes decides is open where that look is one of three."""
    # standard error 0.33 %, so 3.25 of them over the margin: p = 0.005 with 9 degrees of freedom
    borderline = processes(1.021, 10, sd=0.01)
    assert verdicts(borderline, looks=(10,)) == [("faster", 10)]
    assert verdicts(borderline, looks=(10, 20, 30)) == [("open", 10)]


def test_more_rows_ask_for_more() -> None:
    """The same row among twenty unclear ones is not decided: Holm's correction counts them all."""
    borderline, unclear = processes(1.0225, 10, sd=0.01), processes(1.0, 10, sd=0.1)
    assert verdicts(borderline, *[unclear] * 20, looks=(10,))[0] == ("inconclusive", 10)


def test_rows_that_are_equivalent_still_count_as_tests() -> None:
    """A row called equivalent early frees no level for the others: which rows those are is chance."""
    unclear, equivalent = processes(1.0225, 10, sd=0.01), processes(1.0, 10)
    alone = judged(unclear, looks=(5, 10))
    among = judged(unclear, *[equivalent] * 20, looks=(5, 10))
    assert alone[0].verdict == "faster"
    assert among[0].verdict == "inconclusive"


def test_the_interval_is_wider_the_more_looks_there_are() -> None:
    """It holds at all looks together, so that each is given at a higher confidence."""
    one, three = (judged(processes(1.2, 10), looks=looks)[0] for looks in ((10,), (10, 20, 30)))
    assert one.ratio == three.ratio == pytest.approx(1.2)
    assert three.low < one.low < one.ratio < one.high < three.high


def test_before_the_first_look_there_are_no_numbers() -> None:
    """A row without processes is open, and asks for no estimate; one that is equivalent is decided."""
    (unmeasured,) = judged([])
    assert (unmeasured.verdict, unmeasured.is_decided, math.isnan(unmeasured.ratio)) == ("open", False, True)
    assert Judgement("equivalent").is_decided


def test_tables_without_a_change_raise_no_more_alarms_than_the_level_allows() -> None:
    """Of 600 tables of three rows at the very edge of the margin, judged at three looks, 1 % may err."""
    rng = np.random.default_rng(11)
    tables = rng.normal(EDGE, 0.006, (600, 3, 20))
    alarms = sum(any(found.verdict in ("faster", "slower") for found in judged(*table)) for table in tables.tolist())
    assert alarms <= LEVEL * len(tables) + 3 * math.sqrt(LEVEL * len(tables))


@pytest.mark.parametrize("looks", [(), (1, 2), (5, 5), (10, 5)])
def test_looks_that_cannot_be_taken_are_refused(looks: tuple[int, ...]) -> None:
    """One process tells no scatter, and processes only grow in number."""
    with pytest.raises(WrongRequest, match="at least 2, each larger than the one before"):
        check_looks(looks)
