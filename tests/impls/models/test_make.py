"""Models from their names."""

import pytest
import torch

from impls import Unresolved
from impls.models.make import make

TINY = "tests.tiny_models"


@pytest.mark.parametrize(
    ("name", "shape", "output"),
    [
        (f"{TINY}:Net[input=5x16]", (5, 16), (2, 5, 16)),
        (f"{TINY}:Net[input={TINY}:inputs]", (5, 16), (2, 5, 16)),
        (f"{TINY}:Net[kind=written,channels=8,input=5x8]", (5, 8), (2, 5, 8)),
        (f"{TINY}:Net[input=5x16,at=layers.1]", (5, 16), (2, 5, 16)),
        (f"{TINY}:Heads[input=5x16,at=attention]", (5, 16), (2, 5, 16)),
    ],
)
def test_a_model_takes_the_input_of_its_name(name: str, shape: tuple[int, ...], output: tuple[int, ...]) -> None:
    """Its shape, or the inputs that a function returns; a layer in a model gets what it gets there."""
    model = make(name)
    assert model.item == shape
    with torch.no_grad():
        assert model(torch.randn(2, *shape)).shape == output


def test_a_head_of_zeros_gets_numbers() -> None:
    """Otherwise every attention would give the right output."""
    model = make(f"{TINY}:Heads[input=5x16]").eval()
    with torch.no_grad():
        assert float(model(torch.randn(1, 5, 16)).std()) > 0.001


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (f"{TINY}:broken[input=5x16]", "OSError: no such weights"),
        (f"{TINY}:no_module[input=5x16]", "must return a torch.nn.Module, got int"),
        (f"{TINY}:missing[input=5x16]", "has no attribute 'missing'"),
        (f"{TINY}:Net[kind=other,input=5x16]", "can't be made: KeyError"),
        (f"{TINY}:Net[input=5x16,at=layers.7]", "has no module 'layers.7'"),
        (f"{TINY}:Net[depth=1]", "give --input"),
    ],
)
def test_what_makes_no_model_is_said_in_one_line(name: str, words: str) -> None:
    """The rule, or the library's own error."""
    with pytest.raises(Unresolved) as error:
        make(name)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
