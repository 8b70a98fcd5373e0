"""The yardstick of these tests: its gradients are held against its own slopes, because nothing else can hold it."""

import numpy as np
import pytest

from tests.impls.reference import forward, gradients


@pytest.mark.parametrize("name", ["x", "qkv.weight", "qkv.bias", "proj.weight", "proj.bias"])
def test_gradients_are_the_slopes_of_the_output(name: str) -> None:
    """The reference's hand-derived gradient predicts how its output moves along any direction."""
    draw = np.random.default_rng(1).normal
    inputs = {
        "x": draw(size=(2, 5, 3)),
        "qkv.weight": draw(size=(12, 3)),
        "qkv.bias": draw(size=12),
        "proj.weight": draw(size=(4, 4)),
        "proj.bias": draw(size=4),
    }
    dy = draw(size=(2, 5, 4))
    direction = draw(size=inputs[name].shape)

    def moved(step: float) -> float:
        weights = inputs | {name: inputs[name] + step * direction}
        return float((forward(weights["x"], weights, heads=2).y * dy).sum())

    slope = (moved(1e-5) - moved(-1e-5)) / 2e-5
    gradient = gradients(inputs["x"], inputs, heads=2, dy=dy)[name]

    assert float((gradient * direction).sum()) == pytest.approx(slope, rel=1e-7)
