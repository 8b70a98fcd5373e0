"""Functions of other packages as kernels: what is passed, which layout is found, and what can't be known."""

import functools
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor, nn

from impls import Unresolved, Unsupported, ViTAttention, with_attend
from impls.contract import declared_options
from impls.foreign import attend_of
from impls.signatures import parameters_of
from tests.impls.reference import error, normal

SCALE = 0.4

sdpa = F.scaled_dot_product_attention


def flash_attn_func(
    q: Tensor, k: Tensor, v: Tensor, dropout_p: float = 0.3, softmax_scale: float | None = None, causal: bool = True
) -> tuple[Tensor, Tensor]:
    """Take `[B, N, H, D]` and return the output with another tensor, as flash-attn does."""
    assert dropout_p == 0
    q, k, v = (each.transpose(1, 2) for each in (q, k, v))
    return sdpa(q, k, v, scale=softmax_scale, is_causal=causal).transpose(1, 2), torch.zeros(1)


def scale_is_fourth(q: Tensor, k: Tensor, v: Tensor, softmax_scale: float | None = None, causal: bool = False) -> Any:
    """Take the same layout, with the scale at the place of ours."""
    return flash_attn_func(q, k, v, 0.0, softmax_scale, causal)


def merged(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
    """Take three dimensions, and no scale."""
    return torch.bmm(torch.bmm(query, key.mT * query.shape[-1] ** -0.5).softmax(-1), value)


def tokens_first(query_layer: Tensor, key_layer: Tensor, value_layer: Tensor) -> Tensor:
    """Take `[N, B, H, D]`."""
    q, k, v = (each.permute(1, 2, 0, 3) for each in (query_layer, key_layer, value_layer))
    return sdpa(q, k, v).permute(2, 0, 1, 3)


def annotated(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, dropout: Callable[..., Any] | None = None
) -> tuple[Tensor, Tensor]:
    """Return the weights too; its dropout is a function."""
    weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
    weights = weights if dropout is None else dropout(weights)
    return weights @ value, weights


def weights_first(q: Tensor, k: Tensor, v: Tensor) -> dict[str, Tensor]:
    """Return the weights first, by name, and use no scale."""
    weights = (q @ k.mT).softmax(-1)
    return {"weights": weights, "output": weights @ v}


def values_first(values: Tensor, keys: Tensor, queries: Tensor, mask: Tensor | None) -> Tensor:
    """Take values, keys and queries, and a mask that is required."""
    assert mask is None
    return sdpa(queries, keys, values)


def is_scaled(q: Tensor, k: Tensor, v: Tensor, scale: bool = True) -> Tensor:
    """Have a flag in place of a scale."""
    return sdpa(q, k, v, scale=None if scale is True else 1.0)


class Function(torch.autograd.Function):
    """A core with a backward of its own, whose `apply` takes no keywords."""

    @staticmethod
    def forward(_ctx: Any, q: Tensor, k: Tensor, v: Tensor, causal: bool, sm_scale: float, _warps: int = 4) -> Tensor:
        """Return the output."""
        return sdpa(q, k, v, is_causal=causal, scale=sm_scale)


class Core(nn.Module):
    """A core that is a module, with a tensor that must be where the inputs are."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("one", torch.ones(1, dtype=torch.float64))

    def forward(self, q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None) -> Tensor:
        """Return the output."""
        assert self.one.dtype == q.dtype
        return sdpa(q, k, v, attn_mask)


class Callback:
    """An instance that is called."""

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *, is_causal: bool = False, block: int = 64) -> Tensor:
        """Return the output; the block is an option."""
        assert block > 0
        return sdpa(q, k, v, is_causal=is_causal)


def inverted_mask(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None) -> Tensor:
    """Have a mask that is true at the keys that are hidden, as in nn.MultiheadAttention."""
    return sdpa(q, k, v, None if attn_mask is None else ~attn_mask)


@torch.library.custom_op("attention_bench_tests::core", mutates_args=())
def custom(q: Tensor, k: Tensor, v: Tensor, softmax_scale: float = 1.0, causal: bool = False) -> Tensor:
    """Return the output, as a registered operator."""
    return sdpa(q, k, v, scale=softmax_scale, is_causal=causal).clone()


@functools.wraps(flash_attn_func)
def decorated(*args: Any, **kwargs: Any) -> Any:
    """Call another function."""
    return flash_attn_func(*args, **kwargs)


MASKS = {"mask", "attn_mask", "enable_gqa"}

STRANGERS: dict[str, tuple[Callable[..., Any], set[str]]] = {
    "torch": (sdpa, MASKS),
    "an operator": (torch.ops.aten.scaled_dot_product_attention, MASKS),
    "a partial builtin": (functools.partial(sdpa, dropout_p=0.5), MASKS),
    "flash": (flash_attn_func, {"mask"}),
    "decorated": (decorated, {"mask"}),
    "scale is fourth": (scale_is_fourth, {"mask"}),
    "merged": (merged, set()),
    "tokens first": (tokens_first, set()),
    "annotated": (annotated, set()),
    "weights first": (weights_first, set()),
    "values first": (values_first, set()),
    "a flag": (is_scaled, set()),
    "apply": (Function.apply, {"mask"}),
    "an autograd function": (Function, {"mask"}),
    "a module": (Core(), {"attn_mask"}),
    "an instance": (Callback(), {"mask", "block"}),
    "inverted mask": (inverted_mask, {"attn_mask"}),
    "a custom operator": (custom, {"mask"}),
}


@pytest.mark.parametrize("name", STRANGERS)
def test_a_foreign_function_computes_our_core(name: str) -> None:
    """Whatever its order of arguments and dimensions, the result is attention with our scale, causal if declared.

    It declares what it can do, and its keyword-only parameters are options.
    """
    function, options = STRANGERS[name]
    attend = attend_of(function, "package:function")
    assert attend is not None
    assert declared_options(attend) == options
    q, k, v = torch.randn(3, 2, 3, 20, 16)
    for scale in (SCALE, 16**-0.5):
        torch.testing.assert_close(attend(q, k, v, scale), sdpa(q, k, v, scale=scale))
    if "mask" in options:
        torch.testing.assert_close(attend(q, k, v, SCALE, mask="causal"), sdpa(q, k, v, scale=SCALE, is_causal=True))


def test_a_mask_tensor_has_the_meaning_of_torchs_function() -> None:
    """Where it has, boolean and added masks are passed on; a function with another meaning is unsupported."""
    q, k, v = torch.randn(3, 2, 3, 20, 16)
    attend, inverted = attend_of(sdpa, "package:sdpa"), attend_of(inverted_mask, "package:inverted_mask")
    assert attend
    assert inverted
    numbers = torch.randn(2, 1, 20, 20)
    for mask in (numbers > 0, numbers):
        torch.testing.assert_close(attend(q, k, v, SCALE, attn_mask=mask), sdpa(q, k, v, mask, scale=SCALE))
    with pytest.raises(Unsupported, match="package:inverted_mask"):
        inverted(q, k, v, SCALE, attn_mask=numbers > 0)


def test_grouped_heads_reach_a_function_that_declares_them() -> None:
    """Torch's function computes fewer heads of keys than of queries."""
    attend = attend_of(sdpa, "package:sdpa")
    assert attend
    q, (k, v) = torch.randn(2, 4, 20, 16), torch.randn(2, 2, 2, 20, 16)
    expected = sdpa(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1))
    torch.testing.assert_close(attend(q, k, v, 16**-0.5, enable_gqa=True), expected)


def test_a_layer_with_a_foreign_core_has_its_gradients() -> None:
    """The search for the layout leaves a training step, the random numbers and the layer alone."""
    layer, x = ViTAttention(8, 8, 2), normal(2, 5, 8)
    attend = attend_of(flash_attn_func, "package:flash_attn_func")
    assert attend
    before = torch.random.get_rng_state()
    adapted = with_attend(attend)(layer)
    y = adapted(x)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert error(y, layer, x) < 5e-5
    got, expected = (torch.autograd.grad(each(x).sum(), layer.qkv.weight)[0] for each in (adapted, layer))
    torch.testing.assert_close(got, expected)


def test_a_compiled_layer_finds_the_layout_while_it_is_traced() -> None:
    """The calls that find it are no part of the graph, which has no break."""
    attend = attend_of(flash_attn_func, "package:flash_attn_func")
    assert attend
    q, k, v = torch.randn(3, 2, 3, 20, 16)
    compiled = torch.compile(attend, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(q, k, v, SCALE), sdpa(q, k, v, scale=SCALE))


def ours(q: Tensor, k: Tensor, v: Tensor, s: float) -> Tensor:
    """Have our contract."""
    return sdpa(q, k, v, scale=s)


def ours_with_a_default(
    q: Tensor, k: Tensor, v: Tensor, scale: float = 1.0, block: int = 64, *, mask: Any = None
) -> Any:
    """Have our contract too."""
    return sdpa(q, k, v, scale=scale)


def test_our_own_contract_comes_first() -> None:
    """A core with a fourth argument of an unknown name, and one whose scale has a default, are called as they are."""
    for attend in (ours, ours_with_a_default, lambda q, _k, _v, *_: q):
        assert attend_of(attend, "package:attend") is attend


class Whole(nn.Module):
    """An adapter that is a class of modules."""

    def __init__(self, layer: nn.Module, *, size: int = 1) -> None:
        super().__init__()
        self.layer, self.size = layer, size


def test_an_adapter_is_none() -> None:
    """What takes a layer is an adapter: a function, a class, and what `with_attend` returns."""
    for adapt in (lambda layer: layer, lambda layer, *, _block=1: layer, Whole, Callback, with_attend(ours)):
        assert attend_of(adapt, "package:adapt") is None


def of_a_layer(module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any, scaling: float) -> Any:
    """Take the layer first, as functions of transformers do."""


def packed(qkv: Tensor, causal: bool = False) -> Tensor:
    """Take one tensor of the three."""
    return qkv


def windowed(q: Tensor, k: Tensor, v: Tensor, window_size: int) -> Tensor:
    """Need something that no name says."""
    return q


class with_buckets(torch.autograd.Function):  # noqa: N801 - it stands for a function
    """Need a size of blocks by position."""

    @staticmethod
    def forward(_ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Any, causal: bool, bucket_size: int) -> Tensor:
        """Return the output."""
        assert bucket_size > 0
        return sdpa(q, k, v, mask, is_causal=causal)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (of_a_layer, ["needs module", "f(module=…, query=q, key=k, value=v, attention_mask=None, scaling=scale)"]),
        (packed, ["qkv=…", "no parameter"]),
        (windowed, ["needs window_size", "window_size=…"]),
        (with_buckets.apply, ["needs bucket_size", "return f(q, k, v, None, False, …)"]),
        (Core, ["a class", "core = f(…)", "return core(q=q, k=k, v=v"]),
    ],
)
def test_what_can_not_be_known_is_refused_with_a_wrapper(function: Callable[..., Any], words: list[str]) -> None:
    """The line says what is missing, and how to write an attend that gives it."""
    with pytest.raises(Unresolved) as refusal:
        attend_of(function, "package.module:f")
    message = str(refusal.value)
    for word in ("'package.module:f'", "from package.module import f", "def attend(q, k, v, scale): return", *words):
        assert word in message
    assert "\n" not in message


def linear(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return linear attention, which is another function."""
    return q.softmax(-1) @ (k.softmax(-2).mT @ v)


def fails(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Fail with several lines."""
    raise RuntimeError("only on a moon\nor two")


def lacks_a_kernel(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Fail because the device isn't supported."""
    raise NotImplementedError("no kernel here")


def of_another_shape(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Return one number."""
    return q.new_zeros(())


@pytest.mark.parametrize(
    ("function", "kind", "words"),
    [
        (linear, Unresolved, "none of the layouts"),
        (fails, Unresolved, "RuntimeError: only on a moon (as"),
        (of_another_shape, Unresolved, "returned [[]]"),
        (lacks_a_kernel, NotImplementedError, "no kernel here"),
    ],
)
def test_no_way_to_attention_is_an_error_of_the_first_call(
    function: Callable[..., Any], kind: type[Exception], words: str
) -> None:
    """A call that fails or computes something else in every layout is said in one line with the wrapper.

    An error that says that a device isn't supported is the function's own.
    """
    attend = attend_of(function, "package:f")
    assert attend
    with pytest.raises(kind) as refusal:
        attend(*torch.randn(3, 2, 3, 20, 16), SCALE)
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_kernel_that_is_a_little_wrong_is_left_to_the_judge() -> None:
    """The kernel's layout is known still: only the judge may call it incorrect."""

    def careless(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
        return 1.2 * flash_attn_func(q, k, v, 0.0, None, causal)[0]

    attend = attend_of(careless, "package:careless")
    assert attend
    q, k, v = torch.randn(3, 2, 3, 20, 16)
    torch.testing.assert_close(attend(q, k, v, 16**-0.5), 1.2 * sdpa(q, k, v))


def test_the_parameters_of_a_builtin_are_those_of_its_docstring() -> None:
    """Functions of C++ have no signature, and state their parameters in the first lines of their docstrings."""
    text = "core(q: Tensor, k: Tensor,\n  v, *, scale=None, causal: bool = False) -> Tensor\n\nReturn attention."
    function: Any = SimpleNamespace(__name__="core", __doc__=text)
    parameters = {each.name: each for each in parameters_of(function)}
    assert [*parameters] == ["q", "k", "v", "scale", "causal"]
    assert parameters["causal"].default is False
    assert parameters["scale"].kind is inspect.Parameter.KEYWORD_ONLY
    assert "enable_gqa" in {each.name for each in parameters_of(sdpa)}
