"""Where the batch of a module's inputs is, and token ids in place of numbers."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import impls
from bench.modules.inputs import tried
from bench.modules.making import make
from bench.modules.wrapper import Wrapper
from impls import Unresolved, Unsupported
from tests.make.points import made, point

HERE = "tests.modules.test_inputs"

CHANNELS = 8

COLUMNS: dict[str, Any] = {**vars(point()), "batch": 3, "num_tokens": 5, "token_len": CHANNELS, "channels": CHANNELS}


class SequenceFirst(nn.Module):
    """Attention of tokens `[N, B, C]`, as libraries of texts have it, with a hidden token for each item."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(CHANNELS, 2)

    def forward(self, query: Tensor, hidden: Tensor | None = None) -> Any:
        """Return `[N, B, C]` and weights."""
        return self.attention(query, query, query, hidden)


class Outer(nn.Module):
    """Has the batch first, and a part that has it second."""

    def __init__(self) -> None:
        super().__init__()
        self.part = SequenceFirst()

    def forward(self, x: Tensor) -> Tensor:
        """Return `[B, N, C]`."""
        y: Tensor = self.part(x.transpose(0, 1))[0]
        return y.transpose(0, 1)


class Placed(nn.Module):
    """Attention of tokens and their places, which may see earlier tokens alone."""

    def __init__(self, *, causal: bool = False, first: bool = False) -> None:
        super().__init__()
        self.qkv = nn.Linear(CHANNELS, 3 * CHANNELS)
        self.causal, self.first = causal, first

    def forward(self, x: Tensor, places: Tensor) -> Tensor:
        """Return `[B, N, C]`, or `[N, B, C]` if the sequence is `first`."""
        qkv = self.qkv(x + places)
        q, k, v = (qkv.transpose(0, 1) if self.first else qkv).chunk(3, -1)
        y: Tensor = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return y.transpose(0, 1) if self.first else y


class Graph(nn.Module):
    """A layer over nodes `[N, C]` and edges `[2, E]`, whose output is for nodes, or one for the graph."""

    def __init__(self, *, pooled: bool = False) -> None:
        super().__init__()
        self.pooled = pooled

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        """Return the sums over neighbours."""
        y = torch.zeros_like(x).index_add(0, edges[1], x[edges[0]])
        return y.sum(0, keepdim=True) if self.pooled else y


class Text(nn.Module):
    """A model of token ids, with positions and a part that attends.

    One may change in place what its embedding returns, as Performer does.
    """

    def __init__(self, kind: str = "usual") -> None:
        super().__init__()
        self.places = nn.Embedding(20, CHANNELS)
        self.words = nn.Embedding(30, CHANNELS)
        self.part = nn.TransformerEncoderLayer(CHANNELS, 2, 16, 0.0, batch_first=True)
        self.kind = kind

    def forward(self, ids: Tensor) -> Tensor:
        """Return `[B, N, C]` for ids `[B, N]`."""
        x = self.words(ids)
        places = self.places(torch.arange(ids.shape[1], device=ids.device))
        y: Tensor = self.part(x.add_(places) if self.kind == "changing" else x + places)
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


class Noisy(nn.Module):
    """Draws random numbers in evaluation too."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x with some numbers left out."""
        return nn.functional.dropout(x)


class Lazy(nn.Module):
    """Has weights that get their sizes in the first call."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.LazyLinear(3)

    def forward(self, x: Tensor) -> Tensor:
        """Return `[B, N, 3]`."""
        y: Tensor = self.linear(x)
        return y


def hidden() -> dict[str, Tensor]:
    """Return five tokens of three items, the last of which is hidden in the second item."""
    where = torch.zeros(3, 5, dtype=torch.bool)
    where[1, 4] = True
    return {"query": torch.randn(5, 3, CHANNELS), "hidden": where}


def crossed() -> tuple[Tensor, ...]:
    """Return queries, keys and values of sequences of other lengths, each for three items."""
    return torch.randn(5, 3, CHANNELS), torch.randn(7, 3, CHANNELS), torch.randn(7, 3, CHANNELS)


def placed() -> tuple[Tensor, Tensor]:
    """Return five tokens of two items, and one place for each token of any item."""
    return torch.randn(2, 5, CHANNELS), torch.randn(1, 5, CHANNELS)


def placed_first() -> tuple[Tensor, ...]:
    """Return the same with the sequence first."""
    return tuple(each.transpose(0, 1) for each in placed())


def graph() -> tuple[Tensor, Tensor]:
    """Return forty nodes and edges between any of them."""
    return torch.randn(40, CHANNELS), torch.arange(80).view(2, 40) % 40


def ids() -> Tensor:
    """Return token ids of three items."""
    return torch.arange(15).view(3, 5) + 10


MHA = f"torch.nn:MultiheadAttention[embed_dim={CHANNELS},num_heads=2,batch_first=False"


@pytest.mark.parametrize(
    "name",
    [
        f"{HERE}:SequenceFirst",
        f"{HERE}:SequenceFirst[input=3x5x{CHANNELS}]",
        f"{HERE}:SequenceFirst[input={HERE}:hidden]",
        f"{HERE}:Outer[input=3x5x{CHANNELS},at=part]",
        f"{MHA}]",
        f"{MHA},input=3x5x{CHANNELS}]",
        f"{MHA},input={HERE}:crossed]",
        f"{HERE}:Placed[first=True,input={HERE}:placed_first]",
        f"{HERE}:Placed[first=True,causal=True,input={HERE}:placed_first]",
    ],
)
def test_a_batch_in_the_second_dimension_is_found(name: str) -> None:
    """Each item is computed by itself, in any number of them, and the wrapper says where the batch is."""
    layer = make(name, COLUMNS)[0].eval()
    assert isinstance(layer, Wrapper)
    assert layer.items == ((5, CHANNELS),)
    x = torch.randn(4, 5, CHANNELS)
    y = layer(x)
    assert y.shape == x.shape
    torch.testing.assert_close(torch.cat([layer(each[None]) for each in x]), y)
    assert "the batch is the second dimension" in layer.said


@pytest.mark.parametrize(
    "name",
    [f"Outer[input=3x5x{CHANNELS}]", *(f"Placed[causal={causal},input={HERE}:placed]" for causal in (False, True))],
)
def test_a_batch_in_the_first_dimension_stays_there(name: str) -> None:
    """Nothing is said of it. What has one row for all items doesn't move it.

    Behind a causal mask the first token depends on no other: it alone would look like an item.
    """
    layer = made(f"{HERE}:{name}")
    assert (layer.batch_dim, layer.items, layer.said) == (0, ((5, CHANNELS),), ())


@pytest.mark.parametrize("name", ["Graph", "Graph[pooled=True"])
def test_an_input_without_a_batch_is_refused(name: str) -> None:
    """Nodes of a graph are no items."""
    options = f"{name}{',' if '[' in name else '['}input={HERE}:graph]"
    with pytest.raises(Unsupported, match=r"the input \[40, 8\] of Graph has no batch"):
        make(f"{HERE}:{options}", COLUMNS)


@pytest.mark.parametrize("kind", ["usual", "changing"])
@pytest.mark.parametrize("given", [",input=3x5", f",input={HERE}:ids"])
def test_token_ids_are_compared_after_their_embedding(kind: str, given: str) -> None:
    """What x is takes the place of the vectors of words, not of those of places, which are declared before."""
    layer = make(f"{HERE}:Text[kind={kind}{given}]", COLUMNS)[0].eval()
    assert isinstance(layer, Wrapper)
    assert (layer.items, layer.embedding) == (((5, CHANNELS),), "words")
    x = torch.randn(5, 5, CHANNELS, requires_grad=True)
    text: Any = layer.inner
    expected = text.part(text.places(torch.arange(5)) + x)
    torch.testing.assert_close(copy.deepcopy(layer)(x), expected)
    assert torch.autograd.grad(layer(x).square().sum(), x)[0].abs().min() > 0
    torch.testing.assert_close(text(ids()), text.part(text.places(torch.arange(5)) + text.words.weight[ids()]))


@pytest.mark.parametrize("setting", ["as_is", "sdpa", "compiled"])
def test_a_model_of_token_ids_is_run_by_any_setting(setting: str) -> None:
    """The embedding returns what comes in each call."""
    layer = made(f"{HERE}:Text[input={HERE}:ids]").eval()
    function = impls.build(layer, setting)
    with torch.inference_mode():
        for _ in range(3):
            x = torch.randn(3, 5, CHANNELS)
            torch.testing.assert_close(function(x), layer(x))


@pytest.mark.parametrize(("name", "item"), [("Text", (5, CHANNELS)), ("OneHot", (5, 30))])
def test_a_part_of_a_model_of_token_ids_has_its_own_input(name: str, item: tuple[int, ...]) -> None:
    """The model needs no embedding then; alone it does."""
    layer = made(f"{HERE}:{name}[input={HERE}:ids,at=part]")
    assert (layer.items, layer.embedding) == ((item,), "")


def test_token_ids_without_an_embedding_are_refused() -> None:
    """The refusal says both ways."""
    with pytest.raises(Unresolved, match=r"no tensor of floating-point numbers.* and calls no nn\.Embedding"):
        make(f"{HERE}:OneHot[input={HERE}:ids]", COLUMNS)


def test_weights_get_their_sizes_before_they_are_needed() -> None:
    """In a call of the module itself."""
    layer = make(f"{HERE}:Lazy", COLUMNS)[0]
    assert sum(each.numel() for each in layer.parameters()) == 3 * CHANNELS + 3


def test_trying_draws_no_random_numbers_of_the_process() -> None:
    """Weights that are made afterwards would be others; a module that draws is left as it is."""
    before = torch.get_rng_state()
    alone = Wrapper(Noisy(), ((5, CHANNELS),))
    assert tried(alone) is alone
    assert torch.equal(torch.get_rng_state(), before)
