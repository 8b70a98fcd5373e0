"""The elements that are compared."""

import math

import pytest
import torch

from bench.measure import elements


def test_elements_are_drawn_where_something_is_expected() -> None:
    """In one of the tensors at least; if that is everywhere, no places are needed."""
    one, other = torch.ones(2, 4, 3), torch.ones(2, 4, 3)
    assert elements.drawn([one]) is None
    one[:, 1:], other[:, 2:] = math.nan, math.nan
    places = elements.drawn([one, other])
    assert places is not None
    assert places.tolist() == [*range(6), *range(12, 18)]


def test_a_large_tensor_has_some_random_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are others in each draw, none is there twice, and each part of the tensor has one."""
    monkeypatch.setattr(elements, "ELEMENTS", 100)
    draws = [elements.drawn([torch.ones(50, 50)]) for _ in range(2)]
    first, second = ([] if each is None else each.tolist() for each in draws)
    assert first != second
    assert [place // 25 for place in first] == [*range(100)]
    assert len({place % 25 for place in first}) > 15


@pytest.mark.parametrize("batch", [False, True])
def test_elements_of_a_tensor_are_those_at_its_places(batch: bool) -> None:
    """Of each item of a batch, if it is one; without places all of it, as it is."""
    tensor = torch.arange(24.0).reshape(2, 3, 4)
    taken = elements.at(torch.tensor([1, 7]), tensor, batch=batch)
    assert taken.tolist() == ([[1, 7], [13, 19]] if batch else [1, 7])
    assert elements.at(None, tensor, batch=batch) is tensor


def test_what_is_wrong_is_spread_to_its_places() -> None:
    """In the shape of the whole tensor, for some elements and for all."""
    wrong = elements.spread(torch.tensor([True, False]), torch.tensor([2, 4]), (2, 3))
    assert wrong.tolist() == [[False, False, True], [False, False, False]]
    assert elements.spread(torch.tensor([[True, False]]), None, (1, 2, 1)).tolist() == [[[True], [False]]]
