"""Kernels of packages, by stand-ins with their signatures and layouts."""

import sys
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor

from impls import Unsupported, ViTAttention, build
from impls.attend import packages
from impls.contract import Adapt
from impls.layers.core import Core
from impls.layers.self_attention import SelfAttention
from impls.lookup import activate
from impls.packing import pack
from tests.impls.reference import normal

sdpa = F.scaled_dot_product_attention


def flash(
    q: Tensor, k: Tensor, v: Tensor, dropout_p: float = 0.0, softmax_scale: float | None = None, causal: bool = False
) -> tuple[Tensor, Tensor]:
    """Take `[B, N, H, D]` and return the output with another tensor, as flash-attn may."""
    q, k, v = (each.transpose(1, 2) for each in (q, k, v))
    return sdpa(q, k, v, None, dropout_p, causal, scale=softmax_scale, enable_gqa=True).transpose(1, 2), torch.zeros(1)


def flash_varlen(
    q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_seqlen_q: int, max_seqlen_k: int,
    dropout_p: float = 0.0, softmax_scale: float | None = None, causal: bool = False,
) -> Tensor:  # fmt: skip
    """Take packed items `[T, H, D]`."""
    assert cu_seqlens_q.dtype == cu_seqlens_k.dtype == torch.int32
    assert max_seqlen_q == max_seqlen_k >= int(cu_seqlens_q.diff().max())
    items = [slice(begin, end) for begin, end in pairwise(cu_seqlens_q.tolist())]
    parts = (flash(q[None, at], k[None, at], v[None, at], dropout_p, softmax_scale, causal)[0][0] for at in items)
    return torch.cat([*parts])


class LowerTriangularMask:
    """The causal mask of xformers, which begins in the upper left corner."""


def efficient(
    query: Tensor, key: Tensor, value: Tensor, attn_bias: Any = None, p: float = 0.0, scale: float | None = None
) -> Tensor:
    """Take `[B, N, H, D]`; masks are objects of the package."""
    assert attn_bias is None or isinstance(attn_bias, LowerTriangularMask)
    return flash(query, key, value, p, scale, attn_bias is not None)[0]


FLASH = (
    ("flash_attn", packages.flash_attn),
    ("flash_attn_interface", packages.flash_attn_3),
    ("flash_attn.cute", packages.flash_attn_4),
)
"""The modules of the three packages, and our adapters."""


@pytest.fixture(autouse=True)
def _packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the packages be imported."""
    functions: dict[str, Any] = {"flash_attn_func": flash, "flash_attn_varlen_func": flash_varlen}
    for module, _ in FLASH:
        stand_in(monkeypatch, module, **functions)
    stand_in(monkeypatch, "xformers", __path__=[])
    stand_in(monkeypatch, "xformers.ops", memory_efficient_attention=efficient, LowerTriangularMask=LowerTriangularMask)


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **attributes: Any) -> None:
    """Let a module be imported that has these attributes."""
    monkeypatch.setitem(sys.modules, name, ModuleType(name))
    vars(sys.modules[name]).update(attributes)


@pytest.mark.parametrize("mask", ["none", "causal"])
@pytest.mark.parametrize("adapt", [*(adapt for _, adapt in FLASH), packages.xformers])
def test_a_kernel_computes_our_core(adapt: Adapt, mask: str) -> None:
    """With our scale, each mask, grouped heads and gradients."""
    layer = Core(32, 4, 2, 0.4, mask, num_tokens=5)
    q, k, v = normal(2, 4, 5, 8).requires_grad_(), *normal(2, 2, 2, 5, 8)
    expected, got = layer(q, k, v), adapt(layer)(q, k, v)
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(*(torch.autograd.grad(each.pow(2).sum(), q)[0] for each in (got, expected)))


@pytest.mark.parametrize("mask", ["none", "causal"])
def test_packed_items_are_those_of_their_own_cores(mask: str) -> None:
    """The items may have one length, but a layer without lengths has no packing."""
    layer, x = ViTAttention(32, 32, 4, mask=mask, lengths="uniform"), normal(1, 11, 32)
    packing = packages.flash_attn_varlen(layer)
    pack(packing, (3, 7, 1), 9, x.device)
    expected = torch.cat([layer(part) for part in x.split((3, 7, 1), dim=1)], dim=1)
    torch.testing.assert_close(packing(x), expected)
    with pytest.raises(Unsupported, match="only core, attention and vit have"):
        packages.flash_attn_varlen(SelfAttention(32, 32, 32))


@pytest.mark.parametrize(
    ("raised", "ends"),
    [
        *((kind, Unsupported) for kind in packages.REFUSALS),
        *((kind, kind) for kind in (*packages.FAILURES, TypeError)),
    ],
)
def test_what_a_package_refuses_is_unsupported(
    raised: type[Exception], ends: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own words stand in one line; a failure ends the case as it would for any other kernel."""

    def refuse(*_: Any, **__: Any) -> Tensor:
        raise raised("headdim should\nbe in [64, 96]")

    stand_in(monkeypatch, "flash_attn", flash_attn_func=refuse)
    words = r"^flash_attn:flash_attn_func: headdim should be in \[64, 96\]$" if ends is Unsupported else "headdim"
    with pytest.raises(ends, match=words):
        packages.flash_attn(ViTAttention(8, 8, 2))(normal(2, 5, 8))


def test_a_package_that_can_not_be_imported_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the words of the import, also if torch imports it, as FlashAttention 4 without triton."""
    monkeypatch.setitem(sys.modules, "flash_attn", None)
    with pytest.raises(
        Unsupported, match=r"^flash_attn:flash_attn_func can't be imported: import of flash_attn halted"
    ):
        packages.flash_attn(ViTAttention(8, 8, 2))

    def without_triton(_name: str) -> None:
        raise ModuleNotFoundError("No module named 'triton'")

    monkeypatch.setattr("impls.lookup.version", lambda _package: "4.0")
    monkeypatch.setattr(torch.nn.attention, "activate_flash_attention_impl", without_triton)
    with pytest.raises(Unsupported, match=r"^flash-attn-4 can't be imported: No module named 'triton'$"):
        activate("sdpa_fa4")


def test_a_causal_mask_needs_as_many_keys_as_queries() -> None:
    """That of FlashAttention ends in the lower right corner; those packages run on a GPU alone."""
    core = packages.flash_attn(Core(16, 2, mask="causal", num_tokens=5))
    with pytest.raises(Unsupported, match="as many keys as queries"):
        core(normal(1, 2, 5, 8), *normal(2, 1, 2, 6, 8))
    with pytest.raises(Unsupported, match="runs only on a GPU"):
        build(ViTAttention(8, 8, 2), "flash_attn")
