"""What a narrower precision brings."""

import pytest

from bench.analyse.precision import changes
from bench.plan.case import CONTROL
from tests.make.records import SPEEDS, case, in_precision, record


def test_the_ratio_is_paired_round_by_round() -> None:
    """What slows all precisions of a round fivefold plays no part: no more is left than processes differ by."""
    of = changes([in_precision("sdpa", dtype, process) for dtype in SPEEDS for process in range(3)])
    assert {each.dtype: each.speedup.value for each in of} == pytest.approx({"bfloat16": 2, "float16": 4})
    for speedup in (each.speedup for each in of):
        assert 0.98 * speedup.value < speedup.low < speedup.high < 1.02 * speedup.value


def test_each_implementation_has_its_own_change() -> None:
    """They come in the order of the records, without the control and what failed."""
    records = [in_precision(name, dtype, 0) for name in ("eager", "sdpa", CONTROL) for dtype in ("float32", "bfloat16")]
    records.append(record(case=case("online", dtype="bfloat16"), status="unsupported", detail="no kernel"))
    records.append(in_precision("online", "float32", 0))
    assert [(each.implementation, each.point.dtype) for each in changes(records)] == [
        ("eager", "float32"),
        ("sdpa", "float32"),
    ]


@pytest.mark.parametrize("seed", [8, None])
def test_replicates_of_other_rounds_are_not_paired(seed: int | None) -> None:
    """Records of the same number but another seed were not measured together; an old journal has no seed."""
    wide = [in_precision("sdpa", "float32", process, seed=7 if seed else None) for process in range(3)]
    narrow = [in_precision("sdpa", "bfloat16", process, seed=seed) for process in range(3)]
    assert changes([*wide, *narrow]) == []
    (change,) = changes([in_precision("sdpa", "float32", 5), *wide, *narrow, in_precision("sdpa", "bfloat16", 5)])
    assert change.speedup.value == pytest.approx(2)
    assert not change.speedup.is_known
