"""The proof of a proposal: it is computed on the tensors of the observed call, and where scores are peaked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend

from impls.modules.formula import ADDED, HIDING, Obstacle, Term
from impls.modules.proposal import Proposal, proposed
from impls.modules.trace import LEFT, MOST_CALLS, RIGHT, Trace

EXACT = 1e-8
"""The largest deviation in float64, relative to the largest value."""

ROUNDINGS = 16
"""The deviation in the model's dtype is at most that of so many roundings of its largest score."""

PEAKS = 100.0
"""The largest score of a query whose scores are made peaked; the smallest is 1."""

MATH = SDPBackend.MATH.name
"""The backend of separate operators."""

GOLDEN = 0.6180339887
"""Its multiples modulo 1 are spread evenly."""


@dataclass(frozen=True)
class Proof:
    """What is known of a core: a proven proposal with its lines to paste, or why there is none."""

    proposal: Proposal | None
    lines: tuple[str, ...] = ()
    obstacle: str = ""
    weights_are_used: bool = False
    """Whether it computes the core, and the obstacle is that scores or weights are used after it."""


def found(trace: Trace) -> Proof:
    """Return the lines that compute a core by SDPA, if it was proven that they do; else what stands against it.

    They are those for the gradient mode that holds, because SDPA's kernel depends on what needs a gradient.
    """
    if not trace.calls:
        return Proof(None, obstacle=f"more than {MOST_CALLS} operators, too many to follow")
    try:
        with torch.no_grad():
            proposal = proposed(trace)
            off = deviation(proposal)
    except Obstacle as obstacle:
        return Proof(None, obstacle=str(obstacle))
    except RuntimeError as error:
        return Proof(None, obstacle=f"operators that could not be run again: {' '.join(str(error).split())[:200]}")
    if trace.use:
        use = f"scores or weights that are used after the core too, at {trace.use}"
        return Proof(None, obstacle=use, weights_are_used=not off)
    if off:
        return Proof(None, obstacle=off)
    proposal = _fused(proposal)
    return Proof(proposal, tuple(lines(proposal)))


def _fused(proposal: Proposal) -> Proposal:
    """Return a proposal, or without gradients the one that detaches its biases, if SDPA has a kernel for that alone."""
    if torch.is_grad_enabled() or _backend(proposal, proposal.recorded()) != MATH:
        return proposal
    detached = proposed(proposal.trace, is_detached=True)
    return proposal if _backend(detached, detached.recorded()) == MATH else detached


def deviation(proposal: Proposal) -> str:
    """Return how a proposal computes something else than the model, relative to the largest value; empty if it doesn't.

    In float64 it must agree for the recorded operands and for peaked ones, and in the model's dtype within rounding.
    """
    trace = proposal.trace
    o = trace.again(trace.operands) if trace.output is None else trace.output
    if not bool(o.isfinite().all()):
        return "numbers that aren't finite, so that nothing can be compared"
    double = {number: each.double() for number, each in trace.operands.items()}
    for operands in (_peaked(proposal, double), double):
        exact = proposal.output(trace.again(operands, torch.float64))
        if (off := _off(proposal.value(proposal.names(operands, torch.float64)), exact)) > EXACT:
            return f"something that isn't known: {proposal.expression} is off by {off:.1g} in float64"
    recorded = proposal.output(o)
    largest = float(_scores(proposal, double).abs().max())
    allowed = ROUNDINGS * torch.finfo(recorded.dtype).eps * (1 + largest)
    for each in (recorded, proposal.value(proposal.recorded())):
        if (off := _off(each, exact)) > allowed:
            dtype = str(recorded.dtype).removeprefix("torch.")
            return f"something that isn't known: {proposal.expression} is off by {off:.1g} in {dtype}"
    return ""


def lines(proposal: Proposal) -> list[str]:
    """Return the line to paste, and a comment for each tensor in it."""
    names = proposal.recorded()
    shapes = ", ".join(f"{name} {list(names[name].shape)}" for name in "qkv")
    return [
        f"o = {proposal.expression}",
        f"# {shapes}: as the first and the last product take them",
        f"# {_kernel(proposal)}",
        *(f"# {name}: {_described(proposal, term)}" for name, term in proposal.terms.items()),
    ]


def _described(proposal: Proposal, term: Term) -> str:
    """Return a tensor in words: `bool [8, 1, 1, 49], True hides, at model.py:12; in attn_mask True takes part`."""
    verb = {ADDED: "is added", HIDING: "True takes part" if term.shows else "True hides"}
    where = "".join(f" at {file}:{line}" for file, line in term.call.lines[:1])
    dtype = str(term.tensor.dtype).removeprefix("torch.")
    what = f"{dtype} {list(term.tensor.shape)}, {verb.get(term.kind, f'{term.kind} the scores')}{where}"
    if "is_causal" in proposal.expression:
        return f"{what}; it is exactly causal"
    return f"{what}; in attn_mask True takes part" if term.kind == HIDING and not term.shows else what


def _kernel(proposal: Proposal) -> str:
    """Return which backend of SDPA the line runs, and whether it does so in training."""
    names = proposal.recorded()
    if _backend(proposal, names) == MATH:
        detached = {name: each.detach() for name, each in names.items()}
        reasons = {
            "a bias needs a gradient": _backend(proposal, detached) != MATH,
            "q and v have other widths": names["q"].shape[-1] != names["v"].shape[-1],
        }
        return "SDPA has no fused kernel for them" + "".join(
            f", because {why}" for why, holds in reasons.items() if holds
        )
    runs = f"SDPA runs {_backend(proposal, names)}"
    if proposal.is_detached:
        return f"{runs} in inference; in training leave .detach() out, and it has no fused kernel"
    is_lost = not torch.is_grad_enabled() and _in_training(proposal) == MATH
    return runs + ", but has no fused kernel in training if a bias needs a gradient" * is_lost


def _in_training(proposal: Proposal) -> str:
    """Return which backend of SDPA the line runs if gradients are taken of its biases too."""
    with torch.inference_mode(mode=False), torch.enable_grad():
        names = {name: each.clone() for name, each in proposal.recorded().items()}
        for name, term in proposal.terms.items():
            if term.kind == ADDED:
                names[name].requires_grad_()
        return _backend(proposal, names)


def _backend(proposal: Proposal, names: Mapping[str, Tensor]) -> str:
    """Return which backend of SDPA the line runs for these tensors in the gradient mode that holds."""
    chosen: list[str] = []

    def choose(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
        chosen.append(SDPBackend(torch._fused_sdp_choice(query, key, value, **options)).name)
        return query.new_empty(*query.shape[:-1], value.shape[-1])

    proposal.value(names, function=choose)
    return chosen[0]


def _peaked(proposal: Proposal, operands: Mapping[int, Tensor]) -> dict[int, Tensor]:
    """Return operands whose queries are scaled, each by its own number, so that the largest scores are 1 to PEAKS."""
    largest = _scores(proposal, operands).abs().amax(-1).flatten()
    spread = torch.arange(1, len(largest) + 1, device=largest.device).double() * GOLDEN % 1
    factor = torch.where(largest > 0, PEAKS**spread / largest.clamp_min(torch.finfo(largest.dtype).tiny), 1.0)
    if proposal.frame.is_flipped:
        right = operands[RIGHT]
        return {**operands, RIGHT: right * factor.view(*right.shape[:-2], 1, -1)}
    left = operands[LEFT]
    return {**operands, LEFT: left * factor.view(*left.shape[:-2], -1, 1)}


def _scores(proposal: Proposal, operands: Mapping[int, Tensor]) -> Tensor:
    """Return the scores [*lead, N, M] without what is added."""
    names = proposal.names(operands, operands[LEFT].dtype)
    q = proposal.value(names, proposal.query).reshape(*names["k"].shape[:-2], -1, names["q"].shape[-1])
    return q @ names["k"].mT * proposal.scale


def _off(value: Tensor, exact: Tensor) -> float:
    """Return the largest deviation, relative to the largest value; infinite if one of both has other numbers."""
    off = float((value.double() - exact).abs().max() / exact.abs().max().clamp_min(torch.finfo(exact.dtype).tiny))
    return off if off == off else float("inf")
