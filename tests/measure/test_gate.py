"""The gate rejects what computes another function, and lets through what does not."""

import pytest
import torch

from bench.measure import gate, workload
from bench.plan.case import Point
from tests.points import point


def judged(at: Point, implementation: str) -> gate.Verdict:
    """Return the gate's verdict on an implementation at a point."""
    work = workload.make(at)
    return gate.judge(workload.subject(work, implementation), work, gate.trials(work))


@pytest.mark.parametrize("implementation", ["eager", "manual", "stepwise", "online", "sdpa", "mha"])
@pytest.mark.parametrize("mode", ["inference", "forward", "train"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_shipped_implementations_pass(implementation: str, mode: str, dtype: str) -> None:
    """What we ship computes the reference's function, output and gradients."""
    verdict = judged(point(mode=mode, dtype=dtype), implementation)
    assert verdict.objection == ""
    assert 0 <= verdict.error <= verdict.tolerance


@pytest.mark.parametrize("mode", ["inference", "train"])
def test_an_output_one_percent_too_large_is_rejected(mode: str) -> None:
    """An error that float32 does not explain is an objection that names tensor, size and tolerance."""
    verdict = judged(point(mode=mode), "tests.foreign:wrong")
    assert "is off by" in verdict.objection
    assert verdict.error > verdict.tolerance


def test_the_tolerance_comes_from_the_dtype() -> None:
    """bfloat16 is allowed an error that float32 is not."""
    assert judged(point(dtype="bfloat16"), "sdpa").tolerance > 100 * judged(point(), "sdpa").tolerance


def test_on_large_shapes_the_first_and_the_last_item_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit two items stand for the batch, and the whole output must still be finite."""
    monkeypatch.setattr(gate, "WHOLE_BATCH_SCORES", 1)
    work = workload.make(point(batch=4, mode="train"))
    trials = gate.trials(work)
    assert trials[0].items == [0, 3]
    assert trials[0].expected[0].shape == (2, 7, 12)
    assert gate.judge(workload.subject(work, "sdpa"), work, trials).objection == ""


def test_a_reference_in_float64_is_what_outputs_are_held_against() -> None:
    """The expected output is that of the layer in float64 on the same weights and input."""
    work = workload.make(point())
    expected = gate.trials(work)[0].expected[0]
    assert expected.dtype == torch.float64
    with torch.inference_mode():
        assert torch.allclose(expected, work.layer(work.x).double(), atol=1e-6)
        assert not torch.equal(expected, work.layer(work.x).double())
