"""The yardstick of these tests: its gradients are held against its own slopes, because nothing else can hold it."""

import numpy as np
import pytest

from tests.impls.reference import forward, gradients


def test_gradients_are_the_slopes_of_the_output() -> None:
    """The reference's hand-derived gradients predict how its output moves along any direction."""
    draw = np.random.default_rng(1).normal
    shapes = {"x": (2, 5, 3), "qkv.weight": (12, 3), "qkv.bias": (12,), "proj.weight": (4, 4), "proj.bias": (4,)}
    inputs = {name: draw(size=shape) for name, shape in shapes.items()}
    dy = draw(size=(2, 5, 4))

    for name, gradient in gradients(inputs["x"], inputs, heads=2, dy=dy).items():
        direction = draw(size=shapes[name])
        before, after = (inputs | {name: inputs[name] + step * direction} for step in (-1e-5, 1e-5))
        moved = forward(after["x"], after, heads=2) - forward(before["x"], before, heads=2)
        assert float((gradient * direction).sum()) == pytest.approx(float((moved * dy).sum()) / 2e-5, rel=1e-7), name
