"""What a narrower precision brings."""

from dataclasses import replace

import pytest

from bench.analyse.change import Change
from bench.analyse.precision import changes
from bench.analyse.rows import plain
from bench.analyse.summary import summarise
from bench.plan.case import CONTROL
from bench.store.record import Record
from tests.make.records import SPEEDS, case, in_precision, record


def of(records: list[Record]) -> list[Change]:
    """Return the changes of precision in a run of these records."""
    return changes(records, plain(summarise(records, "eager")))


def test_the_ratio_is_paired_round_by_round() -> None:
    """What slows all precisions of a round fivefold plays no part: no more is left than processes differ by."""
    found = of([in_precision("sdpa", dtype, process) for dtype in SPEEDS for process in range(3)])
    assert {each.point.dtype: each.ratio.value for each in found} == pytest.approx({"bfloat16": 2, "float16": 4})
    for ratio in (each.ratio for each in found):
        assert 0.98 * ratio.value < ratio.low < ratio.high < 1.02 * ratio.value


def test_each_implementation_that_has_both_times_has_its_own_change() -> None:
    """They come in the order of the records, without the control, what failed, and what failed later."""
    names = ("eager", "sdpa", "mha", CONTROL)
    records = [in_precision(name, dtype, n) for n in (0, 1) for name in names for dtype in ("float32", "bfloat16")]
    records[-3] = replace(records[-3], status="crashed")
    records.append(record(case=case("online", dtype="bfloat16"), status="unsupported", detail="no kernel"))
    records.append(in_precision("online", "float32", 0))
    found = [(each.case.implementation, each.base["dtype"], each.new["dtype"]) for each in of(records)]
    assert found == [("eager", "float32", "bfloat16"), ("sdpa", "float32", "bfloat16")]


@pytest.mark.parametrize("seed", [8, None])
def test_replicates_of_other_rounds_are_not_paired(seed: int | None) -> None:
    """Records of the same number but another seed were not measured together; an old journal has no seed."""
    wide = [in_precision("sdpa", "float32", process, seed=7 if seed else None) for process in range(3)]
    narrow = [in_precision("sdpa", "bfloat16", process, seed=seed) for process in range(3)]
    assert of([*wide, *narrow]) == []
    (change,) = of([in_precision("sdpa", "float32", 5), *wide, *narrow, in_precision("sdpa", "bfloat16", 5)])
    assert change.ratio.value == pytest.approx(2)
    assert not change.ratio.is_known
