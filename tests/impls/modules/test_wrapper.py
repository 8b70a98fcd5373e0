"""A model as a layer, and the stand-in for `F.scaled_dot_product_attention`."""

import pytest
import torch
from torch import nn

from impls import Unresolved, Unsupported
from impls.modules.wrapper import Held, Place, Wrapper, bridge, first_tensor
from tests import tiny_models


class Masked(nn.Module):
    """Adds a mask to its input."""

    def forward(self, x: torch.Tensor, *, mask: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Return both together."""
        return x + mask, None


def test_other_tensors_follow_the_batch() -> None:
    """One that has a row for each item is expanded to the items that come; its rows must not differ.

    Outputs are compared for some items alone.
    """
    model = Wrapper(Masked(), (3,), (Place.X,), {"mask": torch.ones(2, 3)}, batch=2)
    assert isinstance(model.kwargs["mask"], Held)
    assert model(torch.zeros(5, 3)).tolist() == [[1.0] * 3] * 5
    assert model.to(torch.float64)(torch.zeros(1, 3, dtype=torch.float64)).dtype == torch.float64
    with pytest.raises(Unresolved, match="the same for all items"):
        Wrapper(Masked(), (3,), (Place.X,), {"mask": torch.arange(6.0).view(2, 3)}, batch=2)


def test_rows_of_an_item_stay_together() -> None:
    """A layer that gets several rows for each item, such as windows, has them in one item."""
    model = Wrapper(nn.Linear(4, 2), (3, 5, 4), group=3)
    assert model(torch.zeros(2, 3, 5, 4)).shape == (2, 3, 5, 2)


def test_the_first_tensor_is_the_output() -> None:
    """Of a tuple or a mapping; anything else is no output."""
    one = torch.ones(1)
    assert first_tensor((None, one)) is one
    assert first_tensor({"a": one}) is one
    with pytest.raises(Unresolved, match="got str"):
        first_tensor("x")


@pytest.mark.parametrize(
    ("shape", "options", "words"),
    [
        (
            (1, 2, 5, 4),
            {"attn_mask": torch.zeros(5, 5)},
            "a mask tensor, and this attend declares no keyword attn_mask",
        ),
        ((1, 2, 5, 4), {"is_causal": True}, "a causal mask, and this attend declares no keyword mask"),
        ((1, 2, 5, 4), {"dropout_p": 0.1}, "dropout, and this attend declares no keyword dropout_p"),
        ((1, 2, 5, 4), {"enable_gqa": True}, "fewer heads of keys than of queries"),
        ((2, 5, 4), {}, r"an attend takes queries \[B, H, N, D\], and the model has \[2, 5, 4\]"),
    ],
)
def test_what_an_attend_does_not_declare_is_refused(
    shape: tuple[int, ...], options: dict[str, object], words: str
) -> None:
    """Never dropped in silence; queries of three dimensions have no heads."""
    q = torch.randn(shape)
    with pytest.raises(Unsupported, match=words):
        bridge(tiny_models.right)(q, q, q, **options)
