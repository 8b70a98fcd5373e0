"""A model as a layer, and the stand-in for `F.scaled_dot_product_attention`."""

import pytest
import torch
from torch import nn

from impls import Unresolved, Unsupported
from impls.models.model import Held, Model, Place, bridge, first_tensor
from tests import tiny_models


class Masked(nn.Module):
    """Adds a mask to its input."""

    def forward(self, x: torch.Tensor, *, mask: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Return both together."""
        return x + mask, None


def test_other_tensors_follow_the_batch() -> None:
    """One that has a row for each item is expanded to the items that come."""
    model = Model(Masked(), (3,), (Place.X,), {"mask": torch.ones(2, 3)}, batch=2)
    assert isinstance(model.kwargs["mask"], Held)
    assert model(torch.zeros(5, 3)).tolist() == [[1.0] * 3] * 5
    assert model.to(torch.float64)(torch.zeros(1, 3, dtype=torch.float64)).dtype == torch.float64


def test_items_must_not_differ_in_other_tensors() -> None:
    """Outputs are compared for some items alone."""
    with pytest.raises(Unresolved, match="the same for all items"):
        Model(Masked(), (3,), (Place.X,), {"mask": torch.arange(6.0).view(2, 3)}, batch=2)


def test_rows_of_an_item_stay_together() -> None:
    """A layer that gets several rows for each item, such as windows, has them in one item."""
    model = Model(nn.Linear(4, 2), (3, 5, 4), group=3)
    assert model(torch.zeros(2, 3, 5, 4)).shape == (2, 3, 5, 2)


def test_the_first_tensor_is_the_output() -> None:
    """Of a tuple or a mapping; anything else is no output."""
    one = torch.ones(1)
    assert first_tensor((None, one)) is one
    assert first_tensor({"a": one}) is one
    with pytest.raises(Unresolved, match="got str"):
        first_tensor("x")


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"attn_mask": torch.zeros(5, 5)}, "a mask tensor"),
        ({"is_causal": True}, "a causal mask"),
        ({"dropout_p": 0.1}, "dropout"),
        ({"enable_gqa": True}, "fewer heads"),
    ],
)
def test_what_an_attend_does_not_declare_is_refused(options: dict[str, object], what: str) -> None:
    """Never dropped in silence."""
    q = torch.randn(1, 2, 5, 4)
    with pytest.raises(Unsupported, match=what):
        bridge(tiny_models.right)(q, q, q, **options)


def test_an_attend_gets_heads() -> None:
    """Queries of three dimensions have none."""
    q = torch.randn(2, 5, 4)
    with pytest.raises(Unsupported, match=r"\[2, 5, 4\]"):
        bridge(tiny_models.right)(q, q, q)
