"""Functions of other packages as kernels: those of the table are adapted, others are refused with the wrapper."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor, nn

from impls import Unresolved, Unsupported, ViTAttention, build, with_attend
from impls.attend.foreign import KNOWN, attend_of
from impls.contract import declared_options
from tests.impls.reference import error, normal

SCALE = 0.4

sdpa = F.scaled_dot_product_attention


def flash(
    q: Tensor, k: Tensor, v: Tensor, dropout_p: float = 0.0, softmax_scale: float | None = None, causal: bool = False
) -> tuple[Tensor, Tensor]:
    """Take `[B, N, H, D]` and return the output with another tensor, as flash-attn may."""
    q, k, v = (each.transpose(1, 2) for each in (q, k, v))
    return sdpa(q, k, v, None, dropout_p, causal, scale=softmax_scale, enable_gqa=True).transpose(1, 2), torch.zeros(1)


def sage(
    q: Tensor, k: Tensor, v: Tensor, tensor_layout: str = "HND", is_causal: bool = False, sm_scale: float | None = None
) -> Tensor:
    """Take `[B, H, N, D]`, as SageAttention does by default."""
    assert tensor_layout == "HND"
    return sdpa(q, k, v, is_causal=is_causal, scale=sm_scale, enable_gqa=True)


def xformers(query: Tensor, key: Tensor, value: Tensor, attn_bias: Any = None, scale: float | None = None) -> Tensor:
    """Take `[B, N, H, D]`; masks are objects of the package."""
    assert attn_bias is None
    return flash(query, key, value, softmax_scale=scale)[0]


def flashinfer(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, sm_scale: float | None = None) -> Tensor:
    """Take `[N, H, D]`, an item."""
    return flash(q[None], k[None], v[None], softmax_scale=sm_scale, causal=causal)[0][0]


def transformers(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any, **of: Any
) -> tuple[Tensor, None]:
    """Take the layer first, and return `[B, N, H, D]`."""
    assert module.num_key_value_groups == query.shape[1] // key.shape[1]
    scale, is_causal = of["scaling"], of.get("is_causal", False)
    return sdpa(query, key, value, attention_mask, 0, is_causal, scale=scale, enable_gqa=True).transpose(1, 2), None


def diffusers(query: Tensor, key: Tensor, value: Tensor, *, backend: str | None = None, **of: Any) -> Tensor:
    """Take `[B, N, H, D]`, and an option."""
    assert backend in (None, "native")
    q, k, v = (each.transpose(1, 2) for each in (query, key, value))
    return sdpa(q, k, v, **of).transpose(1, 2)


STAND_INS: dict[str, Callable[..., Any]] = {
    "torch.nn.functional:scaled_dot_product_attention": sdpa,
    "torch:ops.aten.scaled_dot_product_attention": torch.ops.aten.scaled_dot_product_attention,
    "flash_attn:flash_attn_func": flash,
    "flash_attn.cute:flash_attn_func": flash,
    "flash_attn_interface:flash_attn_func": flash,
    "xformers.ops:memory_efficient_attention": xformers,
    **{name: sage for name in KNOWN if name.startswith("sageattention:")},
    "flashinfer:single_prefill_with_kv_cache": flashinfer,
    "transformers.integrations.sdpa_attention:sdpa_attention_forward": transformers,
    "diffusers.models.attention_dispatch:dispatch_attention_fn": diffusers,
}
"""Functions with the parameters and layouts of those of the table."""


def known(name: str) -> Any:
    """Return the attend of a stand-in."""
    return attend_of(STAND_INS[name], name)


@pytest.mark.parametrize("name", STAND_INS)
def test_a_known_function_computes_our_core(name: str) -> None:
    """The result is attention with our scale, and with each mask and the grouped heads that it declares."""
    attend, q, k, v = known(name), *torch.randn(3, 2, 4, 20, 16)
    options = declared_options(attend)
    numbers = torch.randn(2, 1, 20, 20)
    asked: list[tuple[dict[str, Any], dict[str, Any]]] = [({}, {}), ({"mask": "causal"}, {"is_causal": True})]
    asked += [({"attn_mask": mask},) * 2 for mask in (numbers > 0, numbers)]
    for ours, torchs in asked:
        if options.issuperset(ours):
            torch.testing.assert_close(attend(q, k, v, SCALE, **ours), sdpa(q, k, v, scale=SCALE, **torchs))
    if "enable_gqa" in options:
        k, v = k[:, :2], v[:, :2]
        expected = sdpa(q, k, v, scale=SCALE, enable_gqa=True)
        torch.testing.assert_close(attend(q, k, v, SCALE, enable_gqa=True), expected)
    if "backend" in options:
        attend(q, q, q, SCALE, backend="native")


def test_the_table_has_a_stand_in_for_each_function() -> None:
    """So each entry is tried; a name counts by its package and its last part."""
    tried = {f"{name.partition(':')[0].partition('.')[0]}:{name.rpartition(':')[2]}" for name in STAND_INS}
    assert tried >= KNOWN.keys()


def test_what_a_known_function_can_not_do_is_unsupported() -> None:
    """A kernel whose causal mask begins in the lower right corner, and a causal mask beside another one."""
    q, k = normal(1, 2, 5, 8), normal(1, 2, 6, 8)
    with pytest.raises(Unsupported, match="last query see all keys"):
        known("flash_attn:flash_attn_func")(q, k, k, 1.0, mask="causal")
    both = {"mask": "causal", "attn_mask": torch.ones(5, 5, dtype=torch.bool)}
    with pytest.raises(Unsupported, match="beside another"):
        known("torch.nn.functional:scaled_dot_product_attention")(q, q, q, 1.0, **both)


def test_a_layer_with_a_foreign_core_has_its_gradients() -> None:
    """Also that of the implementation `flash_attn`, which is a function of the table; both compile without a break."""
    layer, x = ViTAttention(8, 8, 2), normal(2, 5, 8)
    adapted = with_attend(known("flash_attn:flash_attn_func"))(layer)
    assert error(adapted(x), layer, x) < 5e-5
    got, expected = (torch.autograd.grad(each(x).sum(), layer.qkv.weight)[0] for each in (adapted, layer))
    torch.testing.assert_close(got, expected)
    compiled = torch.compile(adapted, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), layer(x))
    with pytest.raises(Unsupported, match="runs on a GPU alone"):
        build(layer, "flash_attn")


def ours(q: Tensor, k: Tensor, v: Tensor, s: float) -> Tensor:
    """Have our contract."""
    return sdpa(q, k, v, scale=s)


def ours_with_a_default(q: Tensor, k: Tensor, v: Tensor, scale: float = 1.0, b: int = 1, *, mask: Any = None) -> Tensor:
    """Have our contract too."""
    return sdpa(q, k, v, scale=scale)


class Whole(nn.Module):
    """An adapter that is a class of modules."""

    def __init__(self, layer: nn.Module, *, size: int = 1) -> None:
        super().__init__()
        self.layer, self.size = layer, size


def test_our_own_contract_and_adapters_are_left_as_they_are() -> None:
    """A core may have another name for its scale, or a default; what takes a layer is an adapter."""
    for attend in (ours, ours_with_a_default, lambda q, _k, _v, *_: q):
        assert attend_of(attend, "package:attend") is attend
    for adapt in (lambda layer: layer, lambda layer, *, _block=1: layer, Whole, with_attend(ours)):
        assert attend_of(adapt, "package:adapt") is None


class Function(torch.autograd.Function):
    """A core with a backward of its own."""


class Core(nn.Module):
    """A core that is a class of modules."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.width, self.heads = width, heads


@pytest.mark.parametrize(
    "function",
    [
        *(
            eval(f"lambda {parameters}: None")  # noqa: S307 - these texts
            for parameters in ("module, query, key, value, attention_mask", "qkv, causal=False", "q, k, v, mask=None")
        ),
        Function,
        Core,
    ],
)
def test_any_other_function_is_refused_with_a_wrapper(function: Callable[..., Any]) -> None:
    """The line says how to write an attend that calls it."""
    with pytest.raises(Unresolved) as refusal:
        attend_of(function, "package.module:f")
    message = str(refusal.value)
    for words in ("'package.module:f'", "from package.module import f; def attend(q, k, v, scale): return f(q, k, v"):
        assert words in message
    assert "\n" not in message
