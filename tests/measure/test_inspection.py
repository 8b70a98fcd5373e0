"""What ran is named: the kernel that scaled_dot_product_attention chose, and the one that was asked for."""

from contextlib import nullcontext
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from bench.measure import inspection, subjects, workload
from bench.measure.devices import device
from bench.plan.case import Point
from tests.make.points import point

MATH, FLASH = "_scaled_dot_product_attention_math", "_scaled_dot_product_flash_attention_for_cpu"


SHAPE = (2, 4, 16, 8)


@pytest.mark.parametrize(
    ("shapes", "options", "backends"),
    [
        pytest.param([SHAPE] * 3, {"dropout_p": 0.1}, [], id="dropout"),
        pytest.param([SHAPE, SHAPE, (2, 4, 16, 4)], {}, [], id="narrower values"),
        pytest.param(
            [SHAPE] * 3,
            {},
            [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH],
            id="backends of which a CPU has the last",
        ),
    ],
)
def test_a_silent_fallback_to_math_is_named(
    shapes: list[tuple[int, ...]], options: dict[str, Any], backends: list[SDPBackend]
) -> None:
    """Where torch falls back without a word, the kernels say math, and not flash."""

    def call() -> Tensor:
        with sdpa_kernel(backends) if backends else nullcontext():
            q, k, v = map(torch.randn, shapes)
            return F.scaled_dot_product_attention(q, k, v, **options)

    kernels = inspection.inspect(call, device("cpu")).kernels
    assert MATH in kernels
    assert FLASH not in kernels


def kernels_of(implementation: str, at: Point) -> tuple[str, ...]:
    """Return what ran for an implementation at a point."""
    work = workload.make(at)
    call = subjects.step(subjects.subject(work, implementation), work)
    with work.gradient_mode():
        return inspection.inspect(call, device("cpu")).kernels


@pytest.mark.parametrize("mode", ["inference", "train"])
def test_plain_sdpa_names_flash_and_mha_its_fast_path(mode: str) -> None:
    """On the CPU the layer's sdpa runs the flash kernel, and in training its backward too.

    The fast path of nn.MultiheadAttention is an operator of its own; it needs an even number of heads.
    """
    kernels = kernels_of("sdpa", point(mode=mode))
    assert FLASH in kernels
    assert MATH not in kernels
    assert (f"{FLASH}_backward" in kernels) is (mode == "train")
    of_mha = kernels_of("mha", point(num_heads=2, mode=mode))
    assert ("_native_multi_head_attention" in of_mha, FLASH in of_mha) == (mode == "inference", mode == "train")


@pytest.mark.parametrize("name", ["eager", "sdpa"])
def test_a_backward_pass_is_inspected_without_the_forward_pass(name: str) -> None:
    """Neither kernels nor memory of the forward pass count: its output alone is held through the whole of training."""
    of: dict[str, inspection.Inspection] = {}
    for mode in ("train", "backward", "forward"):
        work = workload.make(point(mode=mode, num_tokens=64, channels=24))
        call = subjects.step(subjects.subject(work, name), work)
        with work.gradient_mode():
            of[mode] = inspection.inspect(call, device("cpu"))
    forward = {FLASH} if name == "sdpa" else {"_softmax", "addmm"}
    assert forward <= {*of["train"].kernels} & {*of["forward"].kernels}
    assert not forward & {*of["backward"].kernels}
    needed = {mode: each.peak_bytes or 0 for mode, each in of.items()}
    assert 0 < needed["backward"] <= needed["train"] - work.direction.nbytes


def test_eager_is_named_by_the_operators_that_work_and_not_by_views() -> None:
    """Products and a softmax did the work; transposing and viewing did not."""
    kernels = kernels_of("eager", point())
    assert {"mm", "bmm", "_softmax", "addmm", "add"} <= set(kernels)
    assert not {"transpose", "view", "as_strided", "matmul", "linear", "empty"} & set(kernels)
    assert len(kernels) == len(set(kernels))
