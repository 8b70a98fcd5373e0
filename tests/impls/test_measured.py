"""The implementation that follows a table of choices."""

import warnings
from collections.abc import Callable, Sequence
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
from tests.make.choices import written

SHAPE = (2, 3, 8, 4)


def heads(*shape: int, graph: bool = False) -> list[Tensor]:
    """Return queries, keys and values, of the shape that tables in tests are near to if none is given."""
    return [each.detach().clone().requires_grad_(graph) for each in normal(3, *(shape or SHAPE))]


def by_torch(inputs: Sequence[Tensor], *, causal: bool = False, **options: Any) -> Tensor:
    """Return what torch's own function returns."""
    q, k, v = inputs
    return F.scaled_dot_product_attention(q, k, v, scale=0.3, is_causal=causal, **options)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Return the shapes with which the core `manual` is called."""
    shapes: list[tuple[int, ...]] = []
    core = manual.attend

    def attend(q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None = None) -> Tensor:
        shapes.append(tuple(q.shape))
        return core(q, k, v, scale, mask=mask)

    monkeypatch.setattr(manual, "adapt", with_attend(attend))
    return shapes


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
        (lambda q, k, v: ((q[:, :, :0], k[:, :, :0], v[:, :, :0]), {}), False),  # no logarithm of its size
        (lambda q, k, v: ((q[:0], k[:0], v[:0]), {}), False),
    ],
)
def test_a_call_gets_the_core_of_the_table_or_sdpa(
    change: Callable[..., Any], is_followed: bool, calls: list[tuple[int, ...]], tmp_path: Path
) -> None:
    """What the table doesn't know goes to torch's own function, whose value comes out in any case."""
    attend = measured.attend_by(written(tmp_path))
    inputs, options = change(*heads())
    others = {key: value for key, value in options.items() if key != "mask"}
    expected = by_torch(inputs, causal="mask" in options, **others)
    torch.testing.assert_close(attend(*inputs, 0.3, **options), expected)
    assert bool(calls) is is_followed


def test_points_of_training_and_causal_ones_are_for_their_calls(calls: list[tuple[int, ...]], tmp_path: Path) -> None:
    """A point in training is for calls that want gradients, and these come out right; a core computes its mask."""
    inputs = heads(graph=True)
    for point, kind in (({"mode": "train"}, inputs), ({"mask": "causal"}, heads())):
        mask = point.get("mask")
        attend = measured.attend_by(written(tmp_path, point, name=f"{mask}.json"))
        attend(*heads(), 0.3)
        assert not calls
        y = attend(*kind, 0.3, mask=mask)
        assert len(calls) > 0
        expected = by_torch(kind, causal=mask is not None)
        torch.testing.assert_close(y, expected)
        if y.requires_grad:
            own, its = (torch.autograd.grad(output.square().sum(), inputs) for output in (y, expected))
            torch.testing.assert_close(own, its)
        calls.clear()


def test_a_core_that_fails_is_replaced_by_sdpa(tmp_path: Path) -> None:
    """On a CPU the memory-efficient backend has no kernel; the table of another machine may name it."""
    attend = measured.attend_by(written(tmp_path, {"implementation": "sdpa_efficient"}))
    inputs = heads()
    torch.testing.assert_close(attend(*inputs, 0.3), by_torch(inputs))


@pytest.mark.parametrize("name", ["sdap", "mha", "no_such_module:attend", "online[block=3]"])
def test_what_cannot_be_a_core_is_said_once(name: str, tmp_path: Path) -> None:
    """Sdpa stands in for it."""
    with pytest.warns(UserWarning, match="sdpa stands in for what can't be used here of the table") as said:
        attend = measured.attend_by(written(tmp_path, {"implementation": name}))
    assert name.partition("[")[0] in str(said[0].message)
    assert len(said) == 1
    inputs = heads()
    torch.testing.assert_close(attend(*inputs, 0.3), by_torch(inputs))


HERE = {"cpu": measured._cpu(), "gpus": {}, "torch": torch.__version__}


@pytest.mark.parametrize(
    ("point", "environment", "words"),
    [
        ({}, {"cpu": "another"}, "CPU another and not"),
        ({}, {"torch": "1.0"}, "torch 1.0 and not"),
        ({"threads": 99}, {}, "threads 99 and not 1"),
        # no use on a CPU; other numbers of threads don't matter there
        ({"device": "cuda", "threads": 99}, {"cpu": "another", "gpus": {"cuda:0": "A100"}}, "GPU A100 and not"),
    ],
)
def test_another_machine_is_said_once(
    point: dict[str, Any], environment: dict[str, Any], words: str, calls: list[tuple[int, ...]], tmp_path: Path
) -> None:
    """A single warning names what differs; a table of a GPU is followed by no call on a CPU."""
    with pytest.warns(UserWarning, match=words) as said:
        attend = measured.attend_by(written(tmp_path, point, environment={**HERE, **environment}))
    assert len(said) == 1
    attend(*heads(), 0.3)
    assert bool(calls) is ("device" not in point)


def test_threads_that_change_later_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of this machine has no warning; it is another one for a new number of threads."""
    path, threads = written(tmp_path), torch.get_num_threads()
    with warnings.catch_warnings(action="error"):
        measured.attend_by(path)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads + 1)
    with pytest.warns(UserWarning, match=f"threads {threads} and not {threads + 1}"):
        measured.attend_by(path)


@pytest.mark.parametrize(("mask", "words"), [("foo", "'foo'"), (torch.ones(8, 8, dtype=torch.bool), "a Tensor")])
def test_a_mask_that_is_none_is_refused(mask: Any, words: str, tmp_path: Path) -> None:
    """The refusal says what may stand there, and where a mask tensor goes."""
    with pytest.raises(ValueError, match=f'mask must be None or "causal", got {words}; a mask tensor is attn_mask'):
        measured.attend_by(written(tmp_path))(*heads(), 0.3, mask=mask)


def test_it_is_an_implementation_of_layers(calls: list[tuple[int, ...]], tmp_path: Path) -> None:
    """Named with its table it computes what the layer computes; without one, or with a broken one, it says so.

    It compiles into one graph without a break, before and after a call that wasn't compiled.
    """
    layer, x = ViTAttention(12, 12, 3).eval(), normal(2, 8, 12)
    implementation = build(layer, f"measured[table={written(tmp_path)}]")
    compiled = torch.compile(implementation, backend="eager", fullgraph=True)
    with torch.inference_mode():
        for _ in range(2):
            torch.testing.assert_close(compiled(x), layer(x))
            torch._dynamo.reset()
            torch.testing.assert_close(implementation(x), layer(x))
    assert calls
    with pytest.raises(Unsupported, match="needs a table"):
        build(layer, "measured")
    with pytest.raises(Unresolved, match="can't be read"):
        build(layer, "measured[table=missing.json]")


class Library(nn.Module):
    """A module of a library that calls torch's function."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return the core of queries, keys and values."""
        return F.scaled_dot_product_attention(q, k, v)


def test_it_stands_in_for_the_function_of_torch(calls: list[tuple[int, ...]], tmp_path: Path) -> None:
    """Inside alone, also for a core that calls that function, and for queries without heads.

    After an exception torch's own is back.
    """
    path = written(tmp_path, {}, {"num_tokens": 64, "implementation": "sdpa_math"})
    before = F.scaled_dot_product_attention
    for inputs in (heads(), heads(2, 3, 64, 4), heads(3, 8, 4)):
        expected = Library()(*inputs)
        with measured.in_place_of_sdpa(path):
            torch.testing.assert_close(Library()(*inputs), expected)
        assert F.scaled_dot_product_attention is before
    with pytest.raises(AttributeError), measured.in_place_of_sdpa(path):
        F.scaled_dot_product_attention(None, None, None)  # type: ignore[arg-type]  # what no core takes
    assert calls == [SHAPE] * len(calls) != []
    assert F.scaled_dot_product_attention is before
