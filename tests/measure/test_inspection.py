"""What ran is named: the kernel that scaled_dot_product_attention chose, and the one that was asked for."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from bench.measure import inspection, workload
from bench.plan.case import Point
from tests.points import of_layer, point

MATH, FLASH = "_scaled_dot_product_attention_math", "_scaled_dot_product_flash_attention_for_cpu"


def qkv(*shape: int) -> Tensor:
    """Return a normal tensor."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(5))


def with_dropout() -> Tensor:
    """Return attention with dropout."""
    return F.scaled_dot_product_attention(qkv(2, 4, 16, 8), qkv(2, 4, 16, 8), qkv(2, 4, 16, 8), dropout_p=0.1)


def with_a_mask_that_requires_grad() -> Tensor:
    """Return attention with a mask that is learned."""
    mask = torch.zeros(16, 16, requires_grad=True)
    return F.scaled_dot_product_attention(qkv(2, 4, 16, 8), qkv(2, 4, 16, 8), qkv(2, 4, 16, 8), attn_mask=mask)


def in_three_dimensions() -> Tensor:
    """Return attention without a dimension for heads."""
    return F.scaled_dot_product_attention(qkv(4, 16, 8), qkv(4, 16, 8), qkv(4, 16, 8))


def with_narrower_values() -> Tensor:
    """Return attention with values of another width than the keys."""
    return F.scaled_dot_product_attention(qkv(2, 4, 16, 8), qkv(2, 4, 16, 8), qkv(2, 4, 16, 4))


def with_backends_that_the_cpu_lacks() -> Tensor:
    """Return attention from a list of backends of which the CPU has the last."""
    with sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
        return F.scaled_dot_product_attention(qkv(2, 4, 16, 8), qkv(2, 4, 16, 8), qkv(2, 4, 16, 8))


@pytest.mark.parametrize(
    "call",
    [
        with_dropout,
        with_a_mask_that_requires_grad,
        in_three_dimensions,
        with_narrower_values,
        with_backends_that_the_cpu_lacks,
    ],
)
def test_a_silent_fallback_to_math_is_named(call: Callable[[], Tensor]) -> None:
    """Where torch falls back without a word, the kernels say math, and not flash."""
    kernels = inspection.inspect(call, "cpu").kernels
    assert MATH in kernels
    assert FLASH not in kernels


def kernels_of(implementation: str, at: Point) -> tuple[str, ...]:
    """Return what ran for an implementation at a point."""
    work = workload.make(at)
    call = workload.step(workload.subject(work, implementation), work)
    with work.gradient_mode():
        return inspection.inspect(call, "cpu").kernels


@pytest.mark.parametrize("mode", ["inference", "train"])
def test_plain_sdpa_names_flash(mode: str) -> None:
    """On the CPU the layer's sdpa runs the flash kernel, and in training its backward too."""
    kernels = kernels_of("sdpa", point(mode=mode))
    assert FLASH in kernels
    assert MATH not in kernels
    assert (f"{FLASH}_backward" in kernels) is (mode == "train")


def test_mha_names_its_fast_path_in_inference_and_sdpa_in_training() -> None:
    """The fast path of nn.MultiheadAttention is an operator of its own; it needs an even number of heads."""
    fast = kernels_of("mha", point(num_heads=2))
    assert "_native_multi_head_attention" in fast
    assert FLASH not in fast
    assert FLASH in kernels_of("mha", point(num_heads=2, mode="train"))


def test_eager_is_named_by_the_operators_that_work_and_not_by_views() -> None:
    """Matrix products and a softmax did the work; transposing and viewing did not."""
    kernels = kernels_of("eager", point())
    assert {"mm", "bmm", "_softmax", "addmm", "add"} <= set(kernels)
    assert not {"transpose", "view", "as_strided", "matmul", "linear", "empty"} & set(kernels)
    assert len(kernels) == len(set(kernels))


@pytest.mark.parametrize(("layer", "product"), [("vit", "addmm"), ("patch", "conv"), ("conv", "conv")])
def test_a_product_that_has_its_bias_copied_is_named_too(layer: str, product: str) -> None:
    """A projection or convolution works beside the copy of its bias, whichever kernel torch has for it."""
    assert any(product in kernel for kernel in kernels_of("eager", of_layer(layer)))


def test_a_label_is_no_kernel() -> None:
    """The stages of stepwise are labels: what ran is the same as for eager."""
    assert set(kernels_of("stepwise", point())) == set(kernels_of("eager", point()))


def test_a_compiled_layer_names_its_graph_beside_the_products_that_it_calls() -> None:
    """That Inductor's kernels ran can be seen in the row, and that the products are still the library's."""
    at = point()
    work = workload.make(at)
    call = workload.step(workload.subject(work, "compiled_eager"), work)
    with work.gradient_mode():
        call()
        kernels = inspection.inspect(call, "cpu").kernels
    assert {"CompiledFxGraph", "mm", "bmm"} <= set(kernels)
    assert "_softmax" not in kernels


def test_what_was_asked_for_and_did_not_run_is_a_fallback() -> None:
    """The detail names both; an implementation that names no kernel can't fall back."""
    assert inspection.fallback("sdpa_flash", (MATH, "bmm")) == (
        f"sdpa_flash must run scaled_dot_product_flash_attention; {MATH} ran"
    )
    assert inspection.fallback("sdpa_flash", ("mm", FLASH)) == ""
    assert inspection.fallback("sdpa", (MATH,)) == ""
    assert inspection.fallback("sdpa_math", (FLASH,)) != ""
