"""Lines to paste, on the tensors of calls, and cores for which there are none."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention

from impls.modules.proof import Proof, found
from tests.written_cores import EXPRESSIBLE, INEXPRESSIBLE, traces_of


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
    assert "SDPA runs FLASH_ATTENTION" in finding(kind).lines[1]
