"""Stages as means over calls."""

import pytest

from bench.profiling.stages import stages
from bench.store.profile import BACKWARD, FORWARD, Stage
from tests.points import point
from tests.profiling.taken import captured

AT = {"batch": 2, "num_tokens": 64, "channels": 32, "num_heads": 4}
SCORES, VALUES = 4 * (2 * 4 * 64 * 64), 4 * (2 * 64 * 32)
"""Bytes of the scores, and of the values of all heads."""


def found(mode: str, implementation: str = "stepwise") -> dict[tuple[str, str], Stage]:
    """Return the stages of a case by name and direction."""
    at = point(**AT, mode=mode)
    return {(each.name, each.direction): each for each in stages(captured(at, implementation).middle_half, at)}


@pytest.mark.parametrize("mode", ["inference", "train"])
def test_the_stages_add_up_to_no_more_than_the_call(mode: str) -> None:
    """A stage takes time, and no moment belongs to two of them."""
    times = [stage.time_s for stage in found(mode).values()]
    assert min(times) > 0
    assert sum(times) <= captured(point(**AT, mode=mode), "stepwise").profiled_s


def test_forward_stages_come_in_order_and_backward_in_reverse() -> None:
    """The softmax is computed after the scores, its gradient before theirs."""
    order = list(found("train"))
    names = [name for name, direction in order if direction == FORWARD]
    assert names[0] == "qkv projection"
    assert names[-1] == "skip"
    assert [name for name, direction in order if direction == BACKWARD] == names[::-1]


def test_allocated_bytes_are_those_of_each_step() -> None:
    """By hand: scores and softmax allocate the scores, the first beside copies of queries and keys."""
    stages = found("inference")
    assert stages["softmax", FORWARD].allocated_bytes == SCORES
    assert stages["scores", FORWARD].allocated_bytes == SCORES + 2 * VALUES
    assert stages["qkv projection", FORWARD].allocated_bytes == 3 * VALUES
    assert stages["split heads", FORWARD].allocated_bytes == 0
    assert found("train")["softmax", BACKWARD].allocated_bytes == SCORES


def test_work_comes_from_the_formulas_of_the_layer() -> None:
    """Each stage knows what it must move and compute, so that rates are known; only who names its steps has any."""
    stages = found("train")
    assert stages["softmax", FORWARD].moved_bytes == 2 * SCORES
    assert stages["scores", BACKWARD].flops == 2 * stages["scores", FORWARD].flops  # type: ignore[operator]
    assert stages["softmax", FORWARD].flops is None
    assert found("inference", "eager") == {}
