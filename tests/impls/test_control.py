"""The copy of eager: the same steps in a separate function."""

import ast
import inspect

import torch

from impls import build, control
from impls.attend import eager
from impls.layers.vit import ViTAttention


def steps(function: object) -> list[str]:
    """Return the statements of a function, without its docstring and comments."""
    (definition,) = ast.parse(inspect.getsource(function)).body  # type: ignore[arg-type]
    assert isinstance(definition, ast.FunctionDef)
    return [ast.unparse(statement) for statement in definition.body[1:]]


def test_it_takes_the_same_steps_as_eager() -> None:
    """Statement by statement: what differs in their times is not caused by the code."""
    assert steps(control.attend) == steps(eager.attend)
    assert control.attend is not eager.attend


def test_it_is_found_by_its_name_and_gives_the_same_bits() -> None:
    """`impls.control:adapt` is an implementation like any other."""
    layer, x = ViTAttention(8, 8, 2), torch.randn(2, 5, 8)
    with torch.inference_mode():
        assert torch.equal(build(layer, "impls.control:adapt")(x), build(layer, "eager")(x))
