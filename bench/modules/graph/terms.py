"""What a core does to its scores, as SDPA's arguments: a scale, a mask, and factors of queries."""

import ast
import math
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from bench.modules.graph.constants import constant
from bench.modules.graph.forms import Formless, Shaped, formed, grouped, joined, method, parse
from bench.modules.graph.memory import Memory
from bench.modules.graph.operands import Operands
from bench.modules.graph.scores import ADD, FACTOR, HIDE, TIMES, Sink, Term
from bench.modules.graph.syntax import argument, beside, keyword
from bench.modules.graph.tracing import dtype, name, shape, where


@dataclass
class Terms:
    """The terms of a core, in their order."""

    operands: Operands
    memory: Memory
    queries: str
    sums: list[Shaped] = field(default_factory=list)
    mask: str = ""
    hidden: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    factors: list[str] = field(default_factory=list)
    scale: float = 1.0
    real: set[str] = field(default_factory=set)
    """The dimensions of the scores in which the terms of the mask differ."""
    most: int = 0
    """The number of elements of the largest of them."""
    is_finite: bool = False
    """Whether a hidden score is a finite number, so that a query without keys gets the mean of values."""

    def __post_init__(self) -> None:
        core = self.operands.core
        for term in core.scores.terms:
            if term.kind == TIMES:
                self.scale *= term.value
                self._times(term)
            elif term.kind == ADD:
                self._added(term)
            elif term.kind == HIDE:
                self._hidden(term)
            elif term.kind == FACTOR:
                self._multiplied(term)

    def _times(self, term: Term) -> None:
        """Write a number as the source has it, if it has it where the line stands."""
        kind, is_alpha = name(term.at), term.at is self.operands.first
        if kind in ("mul", "div") or is_alpha:
            said = keyword(term.at, "alpha") if is_alpha else beside(term.at, term.place)
            text = self.operands.moved(said)
            if text is None:
                text = f"{term.value!r}"
                self.operands.notes.append(f"{text} is a factor of this call, at {where(term.at)}")
            elif kind == "div":
                text = f"1 / {grouped(text)}"
        else:
            text = "-1.0"
        self.factors.append(text)
        self._multiply_mask("*", text)

    def _multiply_mask(self, sign: str, text: str) -> None:
        self._flush()
        self.mask = self.mask and f"{grouped(self.mask)} {sign} {grouped(text)}"

    def _of(self, term: Term, word: str) -> Shaped:
        """Return the tensor of a term as the source has it."""
        assert term.tensor is not None
        place = 2 if name(term.at) == "linear" else term.place
        text = self.operands.said(argument(term.at, place), term.tensor, word)
        axes, sizes = self.operands.placed(term.dims), shape(term.tensor)
        return Shaped(text, tuple(axes[len(axes) - len(sizes) :]), sizes)

    def _added(self, term: Term) -> None:
        weight, shaped = term.weight, self._of(term, "bias")
        if "M" not in shaped.real:
            return  # it moves all scores of a query alike
        self.most, text = max(self.most, math.prod(shaped.sizes)), shaped.text
        if weight != 1:
            text = f"-{grouped(text)}" if weight == -1 else f"{weight!r} * {grouped(text)}"
        if _dtype(term) not in (self.operands.dtype, torch.bool):
            text = method(text, "to", self.operands.dtype_text)
        last = self.sums[-1] if self.sums else None
        if last and last.axes == shaped.axes and len({*last.axes}) < len(last.axes):
            sizes = tuple(map(max, last.sizes, shaped.sizes))
            self.sums[-1] = Shaped(f"{last.text} + {text}", last.axes, sizes)
        else:
            self.sums.append(replace(shaped, text=text))

    def _flush(self) -> None:
        """Write the sum so far."""
        self.mask = " + ".join([self.mask] * bool(self.mask) + [*map(self._form, self.sums)])
        self.sums = []

    def _form(self, shaped: Shaped, short: int = 2) -> str:
        """Return a term as one that can be broadcast to [B, H, N, M]."""
        operands, form = self.operands, self.operands.form
        real = shaped.real
        if "M" in real:
            self.real |= real
        if len(form) > len("BH") and not real & {*form[:-1]}:
            form = ["_0", form[-1]]
            axes = tuple(() if axis and axis[0] in operands.form[:-1] else axis for axis in shaped.axes)
            shaped = replace(shaped, axes=axes)
        text = formed(shaped, [*form, "N", "M"], operands.counts, short=short)
        if len(form) > len("BH"):
            sizes = [operands.counts[each] for each in form[:-1]]
            text = method(method(text, "expand", *sizes, -1, -1, -1), "flatten", 0, len(form) - 2)
        return text

    def _hidden(self, term: Term) -> None:
        shaped = self._of(term, "mask")
        self.most, text = max(self.most, math.prod(shaped.sizes)), shaped.text
        other = inverted(text)
        if _dtype(term) != torch.bool:
            other, text = f"{grouped(text)} == 0", f"{grouped(text)} != 0"
        shown, hidden = (text, other) if term.shows else (other, text)
        self.is_finite |= not math.isinf(term.value)
        self.shown.append(self._form(replace(shaped, text=shown)))
        self.hidden.append(self._form(replace(shaped, text=hidden)))

    def _multiplied(self, term: Term) -> None:
        shaped = self._of(term, "factor")
        if "M" in shaped.real:
            raise Formless("a factor differs from key to key")
        text = self._form(shaped, short=3) if math.prod(shaped.sizes) > 1 else shaped.text
        sign = "/" if term.divides else "*"
        self.queries = f"{grouped(self.queries)} {sign} {grouped(text)}"
        self._multiply_mask(sign, text)

    def whole_mask(self, *, is_float: bool = False) -> str:
        """Return the mask, which may be boolean if it needn't be one of numbers; empty without one."""
        self._flush()
        if not self.hidden:
            return self.mask
        kind = self.operands.dtype_text
        lowest = f"torch.finfo({kind}).min" if self.is_finite else 'float("-inf")'
        hidden = joined(self.hidden, "|")
        if self.mask:
            return f"{grouped(self.mask)}.masked_fill({hidden}, {lowest})"
        if is_float or (self.is_finite and not self._has_keys()):
            return f"torch.zeros_like({self.hidden[0]}, dtype={kind}).masked_fill({hidden}, {lowest})"
        return joined(self.shown, "&")

    def with_sink(self, mask: str, sink: Sink) -> str:
        """Return a mask with one more column, the scores that are no products."""
        operands = self.operands
        sizes = [operands.counts.get(each, "1") for each in (*operands.form, "N")]
        if sink.size != 1 or len(sizes) > len("BHN"):
            raise Formless("several columns are no product, or there are more dimensions than items and heads")
        cat = next(each for each in sink.column.users if name(each) == "cat")
        text = operands.said(argument(cat, 1), sink.column, "sink")
        axes = operands.placed(sink.dims)
        own = tuple(("M",) if place == sink.place else axis for place, axis in enumerate(axes))
        shaped = Shaped(text, own, shape(sink.column))
        column = method(formed(shaped, [*operands.form, "N", "M"], operands.counts), "expand", *sizes, -1)
        if dtype(sink.column) != operands.dtype:
            column = method(column, "to", operands.dtype_text)
        zeros = f"torch.zeros_like({column})"
        rest = method(mask or zeros, "expand", *sizes, -1 if mask else operands.counts["M"])
        return f"torch.cat([{rest}, {column}], -1)"

    def notes(self) -> list[str]:
        """Return what a mask costs if it has more numbers than each of its terms."""
        sizes = [dim.size for name, dim in self.operands.slots.items() if name in self.real]
        size_mb = math.prod(sizes) * self.operands.dtype.itemsize / 1e6
        if not math.prod(sizes) > self.most > 0 or size_mb < 1:
            return []
        return [f"the mask of all terms has {size_mb:,.1f} MB here, more than each of them: it can cost time"]

    def _has_keys(self) -> bool:
        """Return whether each query has a key, whatever the inputs are."""
        shown: Tensor | None = None
        for term in self.operands.core.scores.terms:
            if term.kind == HIDE:
                mask = constant(term.tensor, self.memory)
                if mask is None:
                    return False
                mask = mask.bool() if term.shows else ~mask.bool()
                shown = mask if shown is None else shown & mask
        return shown is not None and bool(shown.any(-1).all())

    def whole_scale(self, *, says_all: bool) -> str:
        """Return the factor of the scores as the source has it; empty if it is SDPA's own and needn't be said.

        With one head it is said: it may be that of all heads' width, which other layers of the source don't share.
        """
        heads = self.operands.lead.get(self.operands.form[-1])
        has_heads = heads is not None and heads.size > 1
        is_usual = math.isclose(self.scale, self.operands.width**-0.5, rel_tol=1e-6)
        if is_usual and ((has_heads and not says_all) or not self.factors):
            return ""
        return joined(self.factors, "*") or "1.0"


def inverted(text: str) -> str:
    """Return the inverse of an expression of booleans."""
    match parse(text):
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return ast.unparse(operand)
    return f"~{grouped(text)}"


def _dtype(term: Term) -> torch.dtype:
    assert term.tensor is not None
    return dtype(term.tensor)
