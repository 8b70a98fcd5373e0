"""The line that computes a core by `F.scaled_dot_product_attention`, proven on the tensors of the observed call."""

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import CodeType, SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor

from impls.modules.formula import ADDED, DIVIDING, HIDING, LOWEST, MULTIPLYING, Image, Obstacle, Reader, Term
from impls.modules.trace import LEFT, RIGHT, SCORES, VALUE, Trace

MASK = -50.0
"""An added tensor with a number below this is called a mask, another one a bias."""

FORMS = {0: ("{}[None, None]", "[0, 0]"), 1: ("{}.unsqueeze(1)", ".squeeze(1)"), 2: ("{}", "")}
"""How queries of so many leading dimensions become [B, H, N, D], and how the output gets them back."""

FLAT = ("{}.flatten(0, -4)", ".unflatten(0, q.shape[:-3])")
"""The same for more leading dimensions than two."""


class Frame:
    """How the scores of a core lie: [*lead, N, M], and as [B, H, N, M], by their strides in the first product's result.

    Raises Obstacle if the softmax or the last product runs over another dimension than keys.
    """

    def __init__(self, trace: Trace, image: Image) -> None:
        assert image.softmax is not None
        layout, dim = image.softmax
        rows, columns = trace.shapes[SCORES][-2:]
        self.numel = layout.numel()
        self.is_flipped = (layout.size(dim), layout.stride(dim)) == (rows, columns) != (columns, 1)
        """Whether the first product has the queries on the right."""
        self.keys, self.key_stride = (rows, columns) if self.is_flipped else (columns, 1)
        self.queries, self.query_stride = (columns, 1) if self.is_flipped else (rows, columns)
        contracted = image.layout.dim() - (2 if trace.is_swapped else 1)
        for each, at in ((layout, dim), (image.layout, contracted)):
            if each.size(at) != self.keys or each.stride(at) != self.key_stride:
                raise Obstacle([call for call in trace.calls if call.name.endswith("softmax")])
        self.lead, self.rows = self._dimensions(layout, dim)
        self.heads = self.lead[-1] if len(self.lead) > 1 else 1
        self.batch = math.prod(self.lead) // self.heads
        self.is_flat = trace.is_flat and len(self.lead) == len("BH")
        """Whether operands are [B * H, N, D] in the model."""
        self.operand_lead = (self.batch * self.heads,) if self.is_flat else self.lead

    def _dimensions(self, layout: Tensor, dim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the sizes of a layout's dimensions but for keys, in the order of the first product.

        The second are those of queries. They are several if heads share their keys.
        """
        rest = sorted((each for each in range(layout.dim()) if each != dim), key=layout.stride, reverse=True)
        inside = [each for each in rest if layout.size(each) > 1 and layout.stride(each) < self.queries * self.keys]
        if not inside:
            inside = [each for each in rest if layout.size(each) == 1][-1:]
        lead = tuple(layout.size(each) for each in rest if each not in inside)
        return lead, tuple(layout.size(each) for each in inside) or (1,)

    def over_keys(self, term: Term) -> bool:
        """Return whether a term differs from key to key."""
        end = self.keys * self.key_stride
        strides = term.layout.stride()
        shape = (1,) * (term.layout.dim() - term.tensor.dim()) + tuple(term.tensor.shape)
        return any(size > 1 and self.key_stride <= stride < end for size, stride in zip(shape, strides, strict=True))

    def placed(self, term: Term, lead: Sequence[int]) -> Tensor:
        """Return which number of a term's tensor meets each score, as [*lead, N, M]."""
        numbers = torch.arange(term.tensor.numel(), dtype=torch.int32).view(term.tensor.shape)
        every = torch.empty(self.numel, dtype=torch.int32)
        every.as_strided(term.layout.shape, term.layout.stride()).copy_(numbers)
        return every.view(*lead, self.keys, -1).mT if self.is_flipped else every.view(*lead, -1, self.keys)


@dataclass
class Proposal:
    """An expression of q, k, v and further tensors, all by name; `query` is that of q times its factors.

    If `is_detached`, masks and biases stand in it without their gradients.
    """

    trace: Trace
    frame: Frame
    scale: float
    terms: Mapping[str, Term]
    query: str = "q"
    expression: str = ""
    is_detached: bool = False

    def names(self, operands: Mapping[int, Tensor], dtype: torch.dtype | None = None) -> dict[str, Tensor]:
        """Return the tensors of the expression for these operands of the products; k and v are [*lead, N, D]."""
        left, right, value = (self.split(operands[number]) for number in (LEFT, RIGHT, VALUE))
        q, k = (right.mT, left) if self.frame.is_flipped else (left, right.mT)
        own = {"q": self._in_rows(q), "k": k, "v": value.mT if self.trace.is_swapped else value}
        own |= {name: term.tensor for name, term in self.terms.items()}
        return {name: each.to(dtype) if dtype and each.is_floating_point() else each for name, each in own.items()}

    def output(self, o: Tensor) -> Tensor:
        """Return the output of the last product as [*lead, N, D]."""
        return self._in_rows(self.split(o.mT if self.trace.is_swapped else o))

    def recorded(self) -> dict[str, Tensor]:
        """Return the tensors of the expression as they lay in the observed call."""
        sources = {number: self._source(number, operand) for number, operand in self.trace.operands.items()}
        return self.names(sources)

    def _source(self, number: int, operand: Tensor) -> Tensor:
        try:
            return self.trace.sources[number].view(*self.frame.operand_lead, *operand.shape[-2:])
        except (KeyError, RuntimeError):  # it is no copy, or one in quite another order
            return operand

    def split(self, tensor: Tensor) -> Tensor:
        """Return an operand of a product with the dimensions that it has in the model."""
        return tensor.reshape(*self.frame.operand_lead, *tensor.shape[-2:])

    def _in_rows(self, queries: Tensor) -> Tensor:
        rows = self.frame.rows
        return queries.unflatten(-2, rows) if len(rows) > 1 else queries

    def value(self, names: Mapping[str, Tensor], expression: str = "", function: Any = None) -> Tensor:
        """Return the value of an expression, usually of the whole one; `function` replaces SDPA in it."""
        space = SimpleNamespace(scaled_dot_product_attention=function) if function else F
        known = {"F": space, "torch": torch, **names}
        value: Tensor = eval(_compiled(expression or self.expression), known)  # noqa: S307 - our own expression
        return value


@cache
def _compiled(expression: str) -> CodeType:
    return compile(expression, "<proposal>", "eval")


def proposed(trace: Trace, *, is_detached: bool = False) -> Proposal:
    """Return what the operators of a core say, yet unproven; raises Obstacle if SDPA can't express one of them."""
    image = Reader(trace).weights()
    frame = Frame(trace, image)
    added, hiding, factors = dict[str, Term](), dict[str, Term](), dict[str, Term]()
    for term in image.terms:
        is_row = not frame.over_keys(term)
        if (term.kind == ADDED and is_row) or _is_of_ones(term):
            continue  # it moves all scores of a query alike, or sets to zero what another term hides
        if term.causes or (term.kind not in (ADDED, HIDING) and (added or not is_row)):
            raise Obstacle([*term.causes, term.call])
        kind, word = {ADDED: (added, "bias"), HIDING: (hiding, "mask")}.get(term.kind, (factors, "factor"))
        word = "mask" if kind is added and float(term.tensor.min()) < MASK else word
        kind[_numbered(word, [*added, *hiding, *factors])] = term
    proposal = Proposal(trace, frame, image.scale, {**factors, **added, **hiding}, is_detached=is_detached)
    proposal.query = _query(proposal, factors)
    proposal.expression = _expression(proposal, added, hiding)
    return proposal


def _is_of_ones(term: Term) -> bool:
    """Return whether a term multiplies by ones and zeros."""
    if term.kind != MULTIPLYING or term.causes:
        return False
    zeros = term.tensor == 0
    return bool(zeros.any()) and bool((zeros | (term.tensor == 1)).all()) and not bool(zeros.all())


def _numbered(word: str, taken: Sequence[str]) -> str:
    number = 1 + sum(each == word or each.startswith(f"{word}_") for each in taken)
    return word if number == 1 else f"{word}_{number}"


def _query(proposal: Proposal, factors: Mapping[str, Term]) -> str:
    query = "q"
    for name, term in factors.items():
        query += f" {'/' if term.kind == DIVIDING else '*'} {_factor(proposal, name, term)}"
    return _as_dtype(proposal, query)


def _expression(proposal: Proposal, added: Mapping[str, Term], hiding: Mapping[str, Term]) -> str:
    into, back = FORMS.get(len(proposal.frame.lead), FLAT)
    if proposal.frame.is_flat:
        into, back = f"{{}}.unflatten(0, (-1, {proposal.frame.heads}))", ".flatten(0, 1)"
    recorded, query, rows = proposal.recorded(), proposal.query, len(proposal.frame.rows)
    if rows > 1:
        query, back = f"{_grouped(query)}.flatten({-1 - rows}, -2)", f"{back}.unflatten(-2, q.shape[{-1 - rows}:-1])"
    arguments = [
        into.format(_innermost(proposal, recorded, query, is_formed=into != "{}")),
        into.format(_innermost(proposal, recorded, _as_dtype(proposal, "k"))),
        into.format(_innermost(proposal, recorded, "v")),
    ]
    if _is_causal(proposal.frame, {**added, **hiding}):
        arguments.append("is_causal=True")
    elif added or hiding:
        arguments.append(f"attn_mask={_mask(proposal, added, hiding)}")
    width = proposal.trace.operands[LEFT].shape[-1]
    if not math.isclose(proposal.scale, width**-0.5, rel_tol=1e-9):
        arguments.append(f"scale={proposal.scale!r}")
    return f"F.scaled_dot_product_attention({', '.join(arguments)}){back}"


def _innermost(proposal: Proposal, names: Mapping[str, Tensor], expression: str, *, is_formed: bool = False) -> str:
    """Return an expression whose last dimension is innermost in memory, as fused kernels ask for."""
    if names["q"].shape[-1] == names["v"].shape[-1] and proposal.value(names, expression).stride(-1) != 1:
        return f"{_grouped(expression)}.contiguous()"
    return _grouped(expression) if is_formed else expression


def _mask(proposal: Proposal, added: Mapping[str, Term], hiding: Mapping[str, Term]) -> str:
    """Return the expression of a mask: a sum of what is added, without what is hidden; or what isn't hidden."""
    forms = {name: _fitted(proposal, name, term) for name, term in {**added, **hiding}.items()}
    hidden = " | ".join(f"~{forms[name]}" if term.shows else forms[name] for name, term in hiding.items())
    # without a key, a query takes the mean of all values if hidden scores are large numbers, and nothing if infinite
    is_infinite = any(math.isinf(term.weight) for term in hiding.values())
    lowest = 'float("-inf")' if is_infinite else "torch.finfo(v.dtype).min"
    if not added:
        shown = " & ".join(forms[name] if term.shows else f"~{forms[name]}" for name, term in hiding.items())
        has_keys = bool(proposal.value(proposal.recorded(), shown).any(-1).all())
        zeros = f"torch.zeros_like({next(iter(forms.values()))}, dtype=v.dtype)"
        return shown if has_keys or is_infinite else f"{zeros}.masked_fill({hidden}, {lowest})"
    weighted = (forms[name] if term.weight == 1 else f"{term.weight!r} * {forms[name]}" for name, term in added.items())
    whole = " + ".join(weighted)
    return _as_dtype(proposal, f"{_grouped(whole)}.masked_fill({hidden}, {lowest})" if hiding else whole)


def _as_dtype(proposal: Proposal, expression: str) -> str:
    """Return an expression in the dtype of the values, which SDPA asks for."""
    names = proposal.recorded()
    is_same = proposal.value(names, expression).dtype == names["v"].dtype
    return expression if is_same else f"{_grouped(expression)}.to(v.dtype)"


def _grouped(expression: str) -> str:
    return f"({expression})" if any(f" {sign} " in expression for sign in "+*/|") else expression


def _fitted(proposal: Proposal, name: str, term: Term) -> str:
    """Return the form of a tensor that can be broadcast to [B, H, N, M] and meets the same scores there."""
    frame = proposal.frame
    placed = frame.placed(term, (frame.batch, frame.heads))
    return _form(name, term, placed, proposal, (len("NM"), len("BHNM")))


def _factor(proposal: Proposal, name: str, term: Term) -> str:
    """Return the form of a factor that multiplies q [*lead, N, D]."""
    frame = proposal.frame
    placed = frame.placed(term, (*frame.operand_lead, *frame.rows[:-1]))[..., :1]
    return _form(name, term, placed, proposal, range(placed.dim() + 1))


def _form(name: str, term: Term, placed: Tensor, proposal: Proposal, dimensions: Container[int]) -> str:
    """Return the first form that puts each number of a tensor where it belongs, in a number of dimensions."""
    numbers = torch.arange(term.tensor.numel(), dtype=torch.int32).view(term.tensor.shape)
    q = torch.empty(*proposal.frame.operand_lead, *proposal.frame.rows, 1, device="meta")
    is_detached = proposal.is_detached and term.kind == ADDED and term.tensor.requires_grad
    for form in _forms(f"{name}.detach()" if is_detached else name, term, proposal.frame):
        try:
            found = proposal.value({name: numbers, "q": q}, form)
            if found.dim() in dimensions and torch.equal(found.broadcast_to(placed.shape), placed):
                return form
        except (RuntimeError, IndexError):
            continue
    raise Obstacle([term.call])


def _forms(name: str, term: Term, frame: Frame) -> Iterator[str]:
    """Yield forms of a tensor, the simplest first."""
    own, whole = term.tensor.dim(), term.layout.dim()
    padded = name + f"[{', '.join(['None'] * (whole - own))}]" * (whole > own)
    order = sorted(range(whole), key=lambda each: _place(term.layout, each, frame))
    split = f"{name}.unflatten(0, (-1, {frame.heads}))"
    for form in (name, f"{name}[None]", f"{name}.unsqueeze(1)", split):
        yield from (form, f"{form}.mT")
    if len(frame.rows) > 1:
        for form in (padded, f"{padded}.expand(-1, {frame.rows[0]}, -1, -1)"):
            yield f"{form}.flatten(-3, -2).unsqueeze(1)"
    yield f"{padded}.permute({', '.join(map(str, order))})"
    if whole > len("BHNM"):
        shape = (1,) * (whole - own) + tuple(term.tensor.shape)
        last = whole - len("BHNM")
        sizes = [str(term.layout.size(each)) if each <= last and shape[each] == 1 else "-1" for each in range(whole)]
        if last == 1 and shape[0] == 1:  # windows of several images
            windows = own - whole + 1
            of_heads = f" // {frame.heads}" * frame.is_flat
            sizes[0] = f"q.shape[0]{of_heads} // {f'{name}.shape[{windows}]' if windows >= 0 else shape[1]}"
            sizes[0] = sizes[0] if len(frame.lead) == len("BH") else "q.shape[0]"
        yield f"{padded}.flatten(0, {last})"
        yield f"{padded}.expand({', '.join(sizes)}).flatten(0, {last})"
        first = "q.shape[0]" if frame.operand_lead[:1] == term.layout.shape[:1] else str(term.layout.size(0))
        every = ", ".join([first, *map(str, term.layout.shape[1:])])
        yield f"{padded}.expand({every}).reshape(-1, {frame.heads}, {frame.queries}, {frame.keys})"


def _place(layout: Tensor, dim: int, frame: Frame) -> tuple[bool, bool, int]:
    """Return what orders a layout's dimensions as [B, H, N, M]."""
    stride = layout.stride(dim) if layout.size(dim) > 1 else 0
    return stride == frame.key_stride, stride == frame.query_stride, -stride


def _is_causal(frame: Frame, masks: Mapping[str, Term]) -> bool:
    """Return whether the masks are one that hides exactly the keys after a query, for all items and heads."""
    if len(masks) != 1 or frame.is_flipped or not frame.queries == frame.keys > 1:
        return False
    (term,) = masks.values()
    if term.tensor.shape[-2:] != (frame.queries, frame.keys) or term.tensor.numel() != frame.queries * frame.keys:
        return False
    tensor = term.tensor.reshape(frame.queries, frame.keys)
    if term.kind == HIDING:
        shown = tensor if term.shows else ~tensor
    elif not bool(((tensor == 0) | (tensor < LOWEST)).all()):
        return False
    else:
        shown = tensor == 0
    return torch.equal(shown, torch.ones_like(shown).tril())
