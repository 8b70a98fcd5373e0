"""The change of precision: paired within the replicates that measured both."""

import dataclasses

import pytest

from bench.analyse.precision import changes
from bench.plan.case import CONTROL
from bench.store.record import Record
from tests.examples import case, timed
from tests.show.example_results import record

SPEEDS = {"float32": 1.0, "bfloat16": 2.0, "float16": 4.0}
"""The machine is slower in each later process, and by that factor for both precisions."""


def measured(name: str, dtype: str, process: int, seed: int | None = 7, slowness: float = 1.0) -> Record:
    """Return a record whose rounds take the time of the precision, on a machine that gets slower."""
    made = record(case(name, dtype=dtype), process)
    seconds = [slowness * (1 + process) * (1 + number) / SPEEDS[dtype] for number in range(5)]
    return dataclasses.replace(made, samples=timed(*seconds), seed=seed)


def test_the_ratio_is_paired_round_by_round() -> None:
    """What slows all precisions of a round fivefold plays no part: no more is left than processes differ by."""
    records = [measured("sdpa", dtype, process) for dtype in SPEEDS for process in range(3)]
    found = {change.dtype: change.speedup for change in changes(records)}
    assert {dtype: speedup.value for dtype, speedup in found.items()} == pytest.approx({"bfloat16": 2, "float16": 4})
    for speedup in found.values():
        assert 0.99 * speedup.value < speedup.low < speedup.high < 1.01 * speedup.value


def test_each_implementation_has_its_own_change() -> None:
    """They come in the order of the records, without the control and what failed."""
    records = [measured(name, dtype, 0) for name in ("eager", "sdpa", CONTROL) for dtype in ("float32", "bfloat16")]
    records.append(record(case("online", dtype="bfloat16"), 0, ("unsupported", "no kernel")))
    records.append(measured("online", "float32", 0))
    assert [(change.implementation, change.point.dtype) for change in changes(records)] == [
        ("eager", "float32"),
        ("sdpa", "float32"),
    ]


@pytest.mark.parametrize("seed", [8, None])
def test_replicates_of_other_rounds_are_not_paired(seed: int | None) -> None:
    """Records of the same number but another seed were measured apart; an old journal has no seed."""
    wide = [measured("sdpa", "float32", process, seed=7 if seed else None) for process in range(3)]
    narrow = [measured("sdpa", "bfloat16", process, seed=seed) for process in range(3)]
    assert changes([*wide, *narrow]) == []
    (change,) = changes([measured("sdpa", "float32", 5), *wide, *narrow, measured("sdpa", "bfloat16", 5)])
    assert change.speedup.value == pytest.approx(2)
    assert not change.speedup.is_known
