"""The arguments of a module: x, a function's, and those of its call in a whole model."""

import copy
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import impls
from bench.measure import function, workload
from bench.modules.making import make
from impls import Unresolved, Unsupported
from tests.make.points import made, point

HERE = "tests.modules.test_inputs"

CHANNELS = 8

COLUMNS: dict[str, Any] = {**vars(point()), "batch": 3, "num_tokens": 5, "token_len": CHANNELS, "channels": CHANNELS}


class SequenceFirst(nn.Module):
    """Attention of tokens `[N, B, C]`, as libraries of texts have it."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(CHANNELS, 2)

    def forward(self, x: Tensor) -> Tensor:
        """Return `[N, B, C]`."""
        y: Tensor = self.attention(x, x, x)[0]
        return y


class Windows(nn.Module):
    """Has a part that gets two windows of each item as items of its own, places, and a row of numbers for each item."""

    def __init__(self) -> None:
        super().__init__()
        self.part = Windowed()

    def forward(self, x: Tensor) -> Tensor:
        """Return `[B, N, C]`."""
        places = torch.arange(len(x) * CHANNELS, dtype=x.dtype).view(len(x), CHANNELS)  # by chance as many as items
        y: Tensor = self.part(x.unflatten(1, (2, -1)).flatten(0, 1), places=places, scale=2 * torch.ones(len(x), 1))
        return y.view_as(x)


class Windowed(nn.Module):
    """Adds the second place to each token of a window, and scales each item."""

    def forward(self, x: Tensor, *, places: Tensor, scale: Tensor) -> Tensor:
        """Return `[B·2, N, C]`."""
        y: Tensor = (x + places[1]).unflatten(0, (len(scale), -1))
        return (y * scale[..., None, None]).flatten(0, 1)


class Text(nn.Module):
    """A model of token ids, with positions and a part that attends."""

    def __init__(self) -> None:
        super().__init__()
        self.places = nn.Embedding(20, CHANNELS)
        self.words = nn.Embedding(30, CHANNELS)
        self.part = nn.TransformerEncoderLayer(CHANNELS, 2, 16, 0.0, batch_first=True)

    def forward(self, ids: Tensor) -> Tensor:
        """Return `[B, N, C]` for ids `[B, N]`."""
        x = self.words(ids)
        places = self.places(torch.arange(ids.shape[1], device=ids.device))
        y: Tensor = self.part(x + places)
        return y


class OneHot(nn.Module):
    """Takes token ids without an embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.part = nn.Linear(30, CHANNELS)

    def forward(self, ids: Tensor) -> Tensor:
        """Return `[B, N, C]`."""
        y: Tensor = self.part(nn.functional.one_hot(ids, 30).float())
        return y


class Several(nn.Module):
    """Takes two tensors, a mask and a flag."""

    def forward(self, ids: Tensor, x: Tensor, mask: Tensor, *, doubled: bool) -> dict[str, Any]:
        """Return the sum."""
        return {"ids": ids, "y": (x + ids[..., None]) * mask * (2 if doubled else 1)}


def several() -> dict[str, Any]:
    """Return all arguments of Several for two items of three tokens."""
    mask = torch.tensor([[[1.0], [0.0], [1.0]]])
    return {"ids": torch.tensor([[4] * 3, [5] * 3]), "x": torch.randn(2, 3, 5), "mask": mask, "doubled": True}


def ids() -> Tensor:
    """Return token ids of three items."""
    return torch.arange(15).view(3, 5) + 10


def packed() -> tuple[Tensor, Any]:
    """Return an input, and an object with a tensor."""
    return torch.randn(2, 5, CHANNELS), SimpleNamespace(lengths=torch.tensor([5, 3]))


def test_all_arguments_come_from_a_function() -> None:
    """The first tensor of floating-point numbers is x, flags stay, and all items have the other tensors of the first.

    So it is for as many items as the function returns, and for more.
    """
    layer = made(f"{HERE}:Several[input={HERE}:several]")
    for items in (2, 4):
        x = torch.randn(items, 3, 5)
        expected = 2 * (x + 4)
        expected[:, 1] = 0
        torch.testing.assert_close(layer(x), expected)
    assert (layer.batch, layer.returned) == (2, "dict")


def test_token_ids_are_compared_after_their_embedding() -> None:
    """The input x replaces the word vectors, not the position vectors, which are declared before."""
    layer = made(f"{HERE}:Text[input={HERE}:ids]")
    assert (layer.items, layer.embedding) == (((5, CHANNELS),), "words")
    x = torch.randn(5, 5, CHANNELS, requires_grad=True)
    text: Any = layer.inner
    expected = text.part(text.places(torch.arange(5)) + x)
    torch.testing.assert_close(copy.deepcopy(layer)(x), expected)
    assert torch.autograd.grad(layer(x).square().sum(), x)[0].abs().min() > 0
    torch.testing.assert_close(text(ids()), text.part(text.places(torch.arange(5)) + text.words.weight[ids()]))


@pytest.mark.parametrize("setting", ["sdpa", "compiled"])
def test_a_model_of_token_ids_is_run_by_any_setting(setting: str) -> None:
    """The embedding returns what comes in each call."""
    layer = made(f"{HERE}:Text[input={HERE}:ids]").eval()
    implementation = impls.build(layer, setting)
    with torch.inference_mode():
        for _ in range(3):
            x = torch.randn(3, 5, CHANNELS)
            torch.testing.assert_close(implementation(x), layer(x))


def test_a_part_of_a_model_of_token_ids_has_its_own_input() -> None:
    """The batch comes from the function."""
    layer = made(f"{HERE}:Text[input={HERE}:ids,at=part]")
    assert (layer.items, layer.embedding, layer.batch) == (((5, CHANNELS),), "", 3)


def test_a_part_gets_what_it_gets_in_a_call_with_the_batch_of_the_point() -> None:
    """Windows of an item stay together. Arguments are used as they are.

    In a call with another number of items those with a row for each item follow, and no other that has as many rows.
    """
    layer = made(f"{HERE}:Windows[input=1x4x{CHANNELS},at=part]", batch=3)
    assert (layer.items, layer.batch, layer.rows) == (((2, 2, CHANNELS),), 3, 2)
    assert [*layer.zeros()[0].shape] == [3, 2, 2, CHANNELS]
    for items in (1, 3, 4):
        x = torch.randn(items, 2, 2, CHANNELS)
        torch.testing.assert_close(layer(x), 2 * (x + torch.arange(CHANNELS, 2 * CHANNELS)))


def test_a_batch_that_is_not_the_first_dimension_is_refused() -> None:
    """Before anything is measured. The refusal says what to write."""
    layer = f"{HERE}:SequenceFirst"
    work = workload.make(point(layer=layer, batch=4, num_tokens=4, channels=CHANNELS, num_heads=2))
    with pytest.raises(Unsupported) as refusal:
        function.check(work)
    assert f"{layer}[input=mymodule:inputs], where inputs() returns all arguments" in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (f"OneHot[input={HERE}:ids,at=part]", "takes no floating-point tensor"),
        (f"Text[input={HERE}:packed]", "returns a SimpleNamespace, whose tensors can't be split into items"),
        ("Text[input=3x5,at=part]", r"can't be called: .*; if it takes another input, write .*input=mymodule:inputs"),
    ],
)
def test_what_can_not_be_called_is_said(name: str, words: str) -> None:
    """In one line."""
    with pytest.raises((Unresolved, Unsupported), match=words) as refusal:
        make(f"{HERE}:{name}", COLUMNS)
    assert "\n" not in str(refusal.value)
