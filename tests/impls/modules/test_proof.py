"""Lines to paste, on the tensors of calls, and cores for which there are none."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch.nn.attention import SDPBackend

from impls.modules.proof import Proof, found
from tests.written_cores import (
    BIAS,
    EXPRESSIBLE,
    HIDDEN,
    INEXPRESSIBLE,
    LEARNED,
    LEARNED_TEMPERATURE,
    PLACES,
    TABLE,
    B,
    D,
    H,
    N,
    traces_of,
)


def finding(kind: str, *, seed: int = 1, grad: bool = False) -> Proof:
    """Return what is found of a core."""
    (trace,) = traces_of(kind, seed=seed, grad=grad)
    with torch.no_grad():
        return found(trace)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("kind", EXPRESSIBLE)
def test_a_line_computes_what_the_model_computes(kind: str, grad: bool) -> None:
    """The line of one call, run on the tensors of another, gives the output that the model had there.

    Each further tensor has a comment with its dtype, its shape and its line of source.
    """
    of, other = finding(kind, grad=grad), finding(kind, seed=2, grad=grad).proposal
    assert of.proposal is not None
    assert other is not None
    o = other.trace.output if kind != "changed later" else other.trace.again(other.trace.operands)
    assert o is not None
    names = {"F": F, "torch": torch, **other.recorded()}
    exec(of.lines[0], names)  # noqa: S102 - the line is there to be run
    torch.testing.assert_close(names["o"], other.output(o), atol=1e-5, rtol=1e-5)
    for name, term in of.proposal.terms.items():
        (comment,) = [line for line in of.lines if line.startswith(f"# {name}: ")]
        assert f"{list(term.tensor.shape)}" in comment
        assert "written_cores.py:" in comment
        assert name in of.lines[0] or "is_causal=True" in of.lines[0]


@pytest.mark.parametrize("kind", [kind for kind, (_, words) in INEXPRESSIBLE.items() if words])
def test_another_function_has_no_line(kind: str) -> None:
    """The operator that makes it another one is named, with its line of source."""
    of = finding(kind)
    assert (of.proposal, of.lines) == (None, ())
    assert INEXPRESSIBLE[kind][1] in of.obstacle
    assert "written_cores.py:" in of.obstacle


@pytest.mark.parametrize("kind", [kind for kind, (_, words) in INEXPRESSIBLE.items() if not words])
def test_without_a_softmax_of_all_scores_there_is_no_core(kind: str) -> None:
    """Without a core there is no line either."""
    assert traces_of(kind) == []


def test_a_line_that_is_wrong_is_not_said() -> None:
    """The proof is a computation: if the operators were misread, it fails."""
    (trace,) = traces_of("bias")
    add = next(call for call in trace.calls if call.name == "add")
    add.kwargs["alpha"] = 3  # the recorded output was made with 2
    of = found(trace)
    assert of.proposal is None
    assert "is off by" in of.obstacle


def test_numbers_that_are_not_finite_prove_nothing() -> None:
    """A model whose output is NaN may compute anything."""
    (trace,) = traces_of("plain")
    assert trace.output is not None
    trace.output.fill_(float("nan"))
    assert "finite" in found(trace).obstacle


@pytest.mark.parametrize("kind", ["three dimensions", "two masks", "images", "heads last", "shared keys", "bias"])
def test_a_line_runs_a_fused_kernel(kind: str) -> None:
    """Also if queries have other dimensions than four in the model, or masks have."""
    assert "# SDPA runs FLASH_ATTENTION" in "\n".join(finding(kind).lines)


def backend(line: str, names: dict[str, torch.Tensor]) -> str:
    """Return the backend of SDPA that a line runs for these tensors."""
    seen = []

    def choose(*args: Any, **options: Any) -> torch.Tensor:
        seen.append(SDPBackend(torch._fused_sdp_choice(*args, **options)).name)
        return F.scaled_dot_product_attention(*args, **options)

    exec(line, {"F": SimpleNamespace(scaled_dot_product_attention=choose), "torch": torch, **names})  # noqa: S102
    (name,) = seen
    return name


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
@pytest.mark.parametrize(
    ("kind", "in_inference", "in_training"),
    [
        ("learned bias", "FLASH_ATTENTION", "MATH"),
        ("gathered bias", "FLASH_ATTENTION", "MATH"),
        ("learned bias and mask", "FLASH_ATTENTION", "MATH"),
        ("bias", "FLASH_ATTENTION", "FLASH_ATTENTION"),
        ("learned temperature", "FLASH_ATTENTION", "FLASH_ATTENTION"),
    ],
)
def test_the_kernel_that_is_said_is_the_one_that_the_model_gets(
    mode: type[torch.no_grad], kind: str, in_inference: str, in_training: str
) -> None:
    """A bias that is a parameter keeps SDPA from flash without gradients too, so there the line detaches it."""
    is_training = mode is torch.enable_grad
    with mode():
        (trace,) = traces_of(kind, grad=is_training)
        line, _, kernel, *_ = found(trace).lines
        bias = TABLE[PLACES] if kind == "gathered bias" else LEARNED if "learned" in kind else BIAS
        given = {"bias": bias, "mask": HIDDEN, "factor": LEARNED_TEMPERATURE}
        expected = in_training if is_training else in_inference
        assert backend(line, {**dict.fromkeys("qkv", torch.randn(B, H, N, D)), **given}) == expected
    assert ("no fused kernel for them, because a bias needs a gradient" in kernel) == (expected == "MATH")
    assert ("in training" in kernel) == (not is_training and "bias" in kind)
    assert ("detach" in line) == (not is_training and kind == "learned bias")
