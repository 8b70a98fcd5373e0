"""The implementation that follows a table of choices."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor, nn

from impls import Unresolved, Unsupported, build, measured, with_attend
from impls.attend import manual
from impls.layers.vit import ViTAttention
from tests.impls.reference import normal
from tests.tables import written

SHAPE = (2, 3, 8, 4)


def heads(*shape: int, graph: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries, keys and values, of the shape that tables in tests are near to if none is given."""
    q, k, v = normal(3, *(shape or SHAPE)).unbind()
    return (
        q.detach().clone().requires_grad_(graph),
        k.detach().clone().requires_grad_(graph),
        v.detach().clone().requires_grad_(graph),
    )


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Return the shapes with which the core `manual` is called."""
    calls: list[tuple[int, ...]] = []
    core = manual.attend

    def attend(q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None = None) -> Tensor:
        calls.append(tuple(q.shape))
        return core(q, k, v, scale, mask=mask)

    monkeypatch.setattr(manual, "adapt", with_attend(attend))
    return calls


Options = dict[str, Any]


@pytest.mark.parametrize(
    ("change", "is_followed"),
    [
        (lambda q, k, v: ((q, k, v), {}), True),
        (lambda q, k, v: ((q, k, v), {"mask": "causal"}), False),
        (lambda q, k, v: ((q, k, v), {"attn_mask": torch.zeros(8, 8)}), False),
        (lambda q, k, v: ((q, k, v), {"dropout_p": 1.0}), False),
        (lambda q, k, v: ((q[:, :, :3], k, v), {}), False),
        (lambda q, k, v: ((q, k[:, :1], v[:, :1]), {"enable_gqa": True}), False),
        (lambda q, k, v: ((q[0], k[0], v[0]), {}), False),
        (lambda q, k, v: ((q.double(), k.double(), v.double()), {}), False),
        (lambda q, k, v: ((q, k, v.repeat(1, 1, 1, 2)), {}), True),
    ],
)
def test_a_call_gets_the_core_of_the_table_or_sdpa(
    change: Callable[..., tuple[tuple[Tensor, Tensor, Tensor], Options]],
    is_followed: bool,
    called: list[tuple[int, ...]],
    tmp_path: Path,
) -> None:
    """What the table doesn't know goes to torch's own function, whose value comes out in any case."""
    attend = measured.attend_by(written(tmp_path))
    (q, k, v), options = change(*heads())
    expected = F.scaled_dot_product_attention(
        q,
        k,
        v,
        scale=0.3,
        **{key: value for key, value in options.items() if key != "mask"},
        is_causal="mask" in options,
    )
    torch.testing.assert_close(attend(q, k, v, 0.3, **options), expected)
    assert bool(called) is is_followed


def test_gradients_are_a_kind_of_their_own(called: list[tuple[int, ...]], tmp_path: Path) -> None:
    """A point in training is for calls that want gradients, and these come out right."""
    attend = measured.attend_by(written(tmp_path, {"mode": "train"}))
    attend(*heads(), 0.3)
    assert not called
    inputs = heads(graph=True)
    own = torch.autograd.grad(attend(*inputs, 0.3).square().sum(), inputs)
    assert called
    q, k, v = inputs
    expected = torch.autograd.grad(F.scaled_dot_product_attention(q, k, v, scale=0.3).square().sum(), inputs)
    torch.testing.assert_close(own, expected)


def test_a_causal_point_is_for_causal_calls(called: list[tuple[int, ...]], tmp_path: Path) -> None:
    """The core computes the mask by itself."""
    attend = measured.attend_by(written(tmp_path, {"mask": "causal"}))
    q, k, v = heads()
    attend(q, k, v, 0.3)
    assert not called
    expected = F.scaled_dot_product_attention(q, k, v, scale=0.3, is_causal=True)
    torch.testing.assert_close(attend(q, k, v, 0.3, mask="causal"), expected)
    assert called


def test_a_core_that_fails_is_replaced_by_sdpa(tmp_path: Path) -> None:
    """On a CPU the memory-efficient backend has no kernel; the table of another machine may name it."""
    attend = measured.attend_by(written(tmp_path, {"implementation": "sdpa_efficient"}))
    q, k, v = heads()
    torch.testing.assert_close(attend(q, k, v, 0.3), F.scaled_dot_product_attention(q, k, v, scale=0.3))


@pytest.mark.parametrize("name", ["sdap", "mha", "no_such_module:attend", "online[block=3]"])
def test_what_cannot_be_a_core_is_said_once(name: str, tmp_path: Path) -> None:
    """Sdpa stands in for it."""
    with pytest.warns(UserWarning, match="sdpa stands in for what can't be used here of the table") as said:
        attend = measured.attend_by(written(tmp_path, {"implementation": name}))
    assert name.partition("[")[0] in str(said[0].message)
    assert len(said) == 1
    q, k, v = heads()
    torch.testing.assert_close(attend(q, k, v, 0.3), F.scaled_dot_product_attention(q, k, v, scale=0.3))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"environment": {"cpu": "another", "gpus": {}, "torch": torch.__version__}}, "CPU another and not"),
        ({"environment": {"cpu": measured._cpu(), "gpus": {}, "torch": "1.0"}}, "torch 1.0 and not"),
    ],
)
def test_another_machine_is_said_once(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    """One warning names what differs; a table of here has none."""
    with pytest.warns(UserWarning, match=words):
        measured.attend_by(written(tmp_path, **change))
    other = tmp_path / "here"
    other.mkdir()
    with warnings.catch_warnings(action="error"):
        measured.attend_by(written(other))


def test_a_table_of_a_gpu_is_of_no_use_on_a_cpu(called: list[tuple[int, ...]], tmp_path: Path) -> None:
    """It says so, and all calls go to sdpa; other numbers of threads don't matter there."""
    with pytest.warns(UserWarning, match="GPU A100 and not"):
        attend = measured.attend_by(
            written(
                tmp_path,
                {"device": "cuda", "threads": 99},
                environment={"cpu": "another", "gpus": {"cuda:0": "A100"}, "torch": torch.__version__},
            )
        )
    attend(*heads(), 0.3)
    assert not called


def test_other_threads_are_said(tmp_path: Path) -> None:
    """The numbers that were measured, and the number here."""
    with pytest.warns(UserWarning, match=f"threads 99 and not {torch.get_num_threads()}"):
        measured.attend_by(written(tmp_path, {"threads": 99}))


def test_threads_that_change_later_are_said(tmp_path: Path) -> None:
    """The same table is then another one: that of the new number."""
    path, threads = written(tmp_path), torch.get_num_threads()
    with warnings.catch_warnings(action="error"):
        measured.attend_by(path)
    torch.set_num_threads(threads + 1)
    try:
        with pytest.warns(UserWarning, match=f"threads {threads} and not {threads + 1}"):
            measured.attend_by(path)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("shape", [(2, 2, 0, 64), (0, 2, 4, 64)])
def test_an_empty_call_goes_to_sdpa(shape: tuple[int, ...], tmp_path: Path) -> None:
    """It has no logarithm of its size, and nothing to gain."""
    assert measured.attend_by(written(tmp_path))(*heads(*shape), 0.3).shape == shape


@pytest.mark.parametrize(("mask", "words"), [("foo", "'foo'"), (torch.ones(8, 8, dtype=torch.bool), "a Tensor")])
def test_a_mask_that_is_none_is_refused(mask: Any, words: str, tmp_path: Path) -> None:
    """One line says what may stand there, and where a mask tensor goes."""
    with pytest.raises(ValueError, match=f'mask must be None or "causal", got {words}; a mask tensor is attn_mask'):
        measured.attend_by(written(tmp_path))(*heads(), 0.3, mask=mask)


def test_it_is_an_implementation_of_layers(called: list[tuple[int, ...]], tmp_path: Path) -> None:
    """Named with its table it computes what the layer computes; without one, or with a broken one, it says so."""
    layer, x = ViTAttention(12, 12, 3).eval(), normal(2, 8, 12)
    with torch.inference_mode():
        torch.testing.assert_close(build(layer, f"measured[table={written(tmp_path)}]")(x), layer(x))
    assert called
    with pytest.raises(Unsupported, match="needs a table"):
        build(layer, "measured")
    with pytest.raises(Unresolved, match="can't be read"):
        build(layer, "measured[table=missing.json]")


def test_it_runs_in_a_compiled_graph(tmp_path: Path) -> None:
    """In one graph without a break, before and after a call that wasn't compiled."""
    layer, x = ViTAttention(12, 12, 3).eval(), normal(2, 8, 12)
    implementation = build(layer, f"measured[table={written(tmp_path)}]")
    compiled = torch.compile(implementation, backend="eager", fullgraph=True)
    with torch.inference_mode():
        for _ in range(2):
            torch.testing.assert_close(compiled(x), layer(x))
            torch._dynamo.reset()
            implementation(x)


class Library(nn.Module):
    """A module of a library that calls torch's function."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return the core of queries, keys and values."""
        return F.scaled_dot_product_attention(q, k, v)


def test_it_stands_in_for_the_function_of_torch(called: list[tuple[int, ...]], tmp_path: Path) -> None:
    """Inside alone, also for a core that calls that function; after an exception torch's own is back."""
    q, k, v = heads()
    expected = Library()(q, k, v)
    path = written(tmp_path, {}, {"num_tokens": 64, "implementation": "sdpa_math"})
    before = F.scaled_dot_product_attention
    wide = heads(2, 3, 64, 4)
    with measured.in_place_of_sdpa(path):
        torch.testing.assert_close(Library()(q, k, v), expected)
        torch.testing.assert_close(Library()(*wide), before(*wide))
    assert F.scaled_dot_product_attention is before
    with pytest.raises(AttributeError), measured.in_place_of_sdpa(path):
        F.scaled_dot_product_attention(None, None, None)  # type: ignore[arg-type]  # what no core takes
    assert called == [SHAPE] * len(called) != []
    assert F.scaled_dot_product_attention is before
