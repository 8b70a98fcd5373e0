"""What a core does to its scores, as SDPA's arguments: a scale, a mask, and factors of queries."""

import ast
import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from impls.graph.forms import Formless, Shaped, formed, grouped, joined, method, parse
from impls.graph.operands import Operands
from impls.graph.syntax import Expression, argument, beside, keyword
from impls.graph.tracing import Traced, dtype, name, shape, where

LOWEST = -1000.0
"""An added number below this hides a key."""

MOST_NODES = 300
"""The most operators that are run to know the numbers of a mask."""


@dataclass
class Sum:
    """Tensors that are added in the same dimensions."""

    axes: tuple[tuple[str, ...], ...]
    sizes: tuple[int, ...]
    text: str


@dataclass
class Terms:
    """The terms of a core, in their order."""

    operands: Operands
    graph: Traced
    queries: str
    sums: list[Sum] = field(default_factory=list)
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
        way = self.operands.way
        self.scale = way.p.scale
        if self.scale != 1:
            self._factor(keyword(way.first, "alpha"), self.scale, way.first)
        for kind, value, dims, *at in way.r.terms:
            if kind == "times":
                self.scale *= value
                if at[0] is None:
                    self._scaled("-1.0")
                else:
                    self._factor(beside(at[0], at[1]), value, at[0])
            elif kind == "add":
                self._added(*value, dims, argument(*at) if at else self._of_product())
            elif kind == "hide":
                self._hidden(*value, dims, argument(*at))
            elif kind in ("mul", "div"):
                self._multiplied(kind, value, dims, argument(*at))

    def _of_product(self) -> Expression | None:
        first = self.operands.first
        return argument(first, 0 if name(first) == "baddbmm" else 2)

    def _factor(self, expression: Expression | None, value: float, node: Node) -> None:
        here = self.operands.moved(expression)
        if here is None:
            text = f"{value!r}"
            self.operands.notes.append(f"{text} is a factor of this call, at {where(node)}")
        else:
            text = f"1 / {grouped(here.text)}" if name(node) == "div" else here.text
        self._scaled(text)

    def _scaled(self, text: str) -> None:
        self.factors.append(text)
        self._flush()
        self.mask = self.mask and f"{grouped(self.mask)} * {grouped(text)}"

    def _shaped(self, node: Node, dims: Any, tree: ast.expr) -> Shaped:
        axes = self.operands.placed(dims)
        return Shaped(tree, tuple(axes[len(axes) - len(shape(node)) :]), shape(node))

    def _added(self, node: Node, weight: float, dims: Any, expression: Expression | None) -> None:
        shaped = self._shaped(node, dims, ast.Constant(0))
        if not any("M" in axis and size > 1 for axis, size in zip(shaped.axes, shaped.sizes, strict=True)):
            return  # it moves all scores of a query alike
        text, tree = self.operands.said(expression, node, "bias")
        self.most = max(self.most, math.prod(shaped.sizes))
        if weight != 1:
            text = f"-{grouped(text)}" if weight == -1 else f"{weight!r} * {grouped(text)}"
            tree = parse(text)
        if dtype(node) not in (self.operands.dtype, torch.bool):
            text = method(text, "to", self.operands.dtype_text)
        last = self.sums[-1] if self.sums else None
        if last and last.axes == shaped.axes and len({*last.axes}) < len(last.axes):
            last.sizes = tuple(map(max, last.sizes, shaped.sizes))
            last.text = f"{last.text} + {text}"
        else:
            self.sums.append(Sum(shaped.axes, shaped.sizes, text))

    def _flush(self) -> None:
        """Write the sum so far."""
        every = [self._form(Shaped(parse(each.text), each.axes, each.sizes), each.text) for each in self.sums]
        self.mask = " + ".join([self.mask] * bool(self.mask) + every)
        self.sums = []

    def _form(self, shaped: Shaped, text: str, short: int = 2) -> str:
        """Return a term as one that can be broadcast to [B, H, N, M]."""
        operands, form = self.operands, self.operands.form
        every = zip(shaped.axes, shaped.sizes, strict=True)
        real = {each for axis, size in every if size > 1 for each in axis}
        if "M" in real:
            self.real |= real
        if len(form) > len("BH") and not real & {*form[:-1]}:
            form = ["_0", form[-1]]
            axes = tuple(() if axis and axis[0] in operands.form[:-1] else axis for axis in shaped.axes)
            shaped = Shaped(shaped.tree, axes, shaped.sizes)
        text = formed(shaped, text, [*form, "N", "M"], operands.counts, short=short)
        if len(form) > len("BH"):
            sizes = [operands.counts[each] for each in form[:-1]]
            text = method(method(text, "expand", *sizes, -1, -1, -1), "flatten", 0, len(form) - 2)
        return text

    def _hidden(self, node: Node, value: Any, shows: bool, dims: Any, expression: Expression | None) -> None:
        text, tree = self.operands.said(expression, node, "mask")
        shaped = self._shaped(node, dims, tree)
        self.most = max(self.most, math.prod(shaped.sizes))
        other = inverted(tree, text)
        if dtype(node) != torch.bool:
            other, text = f"{grouped(text)} == 0", f"{grouped(text)} != 0"
        shown, hidden = (text, other) if shows else (other, text)
        number = constant(value, self.graph) if isinstance(value, Node) else torch.tensor(float(value))
        self.is_finite |= number is None or not bool(number.isinf().all())
        self.shown.append(self._form(Shaped(parse(shown), shaped.axes, shaped.sizes), shown))
        self.hidden.append(self._form(Shaped(parse(hidden), shaped.axes, shaped.sizes), hidden))

    def _multiplied(self, kind: str, node: Node, dims: Any, expression: Expression | None) -> None:
        text, tree = self.operands.said(expression, node, "factor")
        shaped = self._shaped(node, dims, tree)
        if shaped.sizes and math.prod(shaped.sizes) > 1:
            if any("M" in axis and size > 1 for axis, size in zip(shaped.axes, shaped.sizes, strict=True)):
                raise Formless("a factor differs from key to key")
            text = self._form(shaped, text, short=3)
        sign = "*" if kind == "mul" else "/"
        self.queries = f"{grouped(self.queries)} {sign} {grouped(text)}"
        self._flush()
        self.mask = self.mask and f"{grouped(self.mask)} {sign} {grouped(text)}"

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

    def with_sink(self, mask: str) -> str:
        """Return a mask with one more column, the scores that are no products."""
        operands = self.operands
        sink, dim, dims = operands.way.r.extra[-3:]
        if operands.way.r.extra[0] != "dropped" or shape(sink)[dim] != 1:
            raise Formless("columns beside the scores take part in the last product")
        cat = next(each for each in sink.users if name(each) == "cat")
        text, tree = operands.said(argument(cat, 1), sink, "sink")
        axes = operands.placed(dims)
        shaped = Shaped(tree, tuple(("M",) if place == dim else axis for place, axis in enumerate(axes)), shape(sink))
        sizes = [operands.counts.get(each, "1") for each in (*operands.form, "N")]
        if len(sizes) > len("BHN"):
            raise Formless("a column that is no product, in more dimensions than items and heads")
        column = method(formed(shaped, text, [*operands.form, "N", "M"], operands.counts), "expand", *sizes, -1)
        if dtype(sink) != operands.dtype:
            column = method(column, "to", operands.dtype_text)
        zeros = f"torch.zeros_like({column})"
        rest = method(mask or zeros, "expand", *sizes, -1 if mask else operands.counts["M"])
        return f"torch.cat([{rest}, {column}], -1)"

    def notes(self) -> list[str]:
        """Return what is known of the mask: that it is causal here, or that it has more numbers than its terms."""
        operands, notes = self.operands, list[str]()
        if self._is_causal():
            notes.append("here the mask hides the keys after each query alone; if it always does: is_causal=True instead")
        sizes = [slot.size for slot in operands.slots if slot.name in self.real]
        size_mb = math.prod(sizes) * operands.dtype.itemsize / 1e6
        if math.prod(sizes) > self.most > 0 and size_mb >= 1:
            notes.append(f"the mask of all terms has {size_mb:,.1f} MB here, more than each of them: it can cost time")
        return notes

    def _is_causal(self) -> bool:
        """Return whether a single term, which no input of the module changes, hides exactly the keys after a query."""
        terms = [each for each in self.operands.way.r.terms if each[0] not in ("times", "row")]
        queries, keys = (slot.size for slot in self.operands.slots[-2:])
        if len(terms) != 1 or not queries == keys > 1:
            return False
        kind, value, *_ = terms[0]
        number = constant(value[0], self.graph) if kind in ("add", "hide") else None
        if number is None or number.shape[-2:] != (queries, keys):
            return False
        shown = number == 0
        if kind == "hide":
            shown = number.bool() if value[2] else ~number.bool()
        elif not bool((shown | (number < LOWEST)).all()):
            return False
        return torch.equal(shown, torch.ones_like(shown).tril())

    def _has_keys(self) -> bool:
        """Return whether each query has a key, whatever the inputs are."""
        shown: Tensor | None = None
        for kind, value, *_ in self.operands.way.r.terms:
            if kind == "hide":
                node, _, shows = value
                mask = constant(node, self.graph)
                if mask is None:
                    return False
                mask = mask.bool() if shows else ~mask.bool()
                shown = mask if shown is None else shown & mask
        return shown is not None and bool(shown.any(-1).all())

    def whole_scale(self, width: int) -> str:
        """Return the factor of the scores as the source has it; empty if it is the usual one."""
        heads = self.operands.form[-1]
        has_heads = any(slot.name == heads and slot.size > 1 for slot in self.operands.lead)
        if math.isclose(self.scale, width**-0.5, rel_tol=1e-6) and (has_heads or not self.factors):
            return ""
        return joined(self.factors, "*") or "1.0"


def inverted(tree: ast.expr, text: str) -> str:
    """Return the inverse of an expression of booleans."""
    is_inverted = isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Invert)
    return ast.unparse(tree.operand) if is_inverted else f"~{grouped(text)}"  # type: ignore[attr-defined]


def constant(node: Node, graph: Traced) -> Tensor | None:
    """Return the value of a node, if no input of the module is in it and few operators make it."""
    values: dict[Node, Any] = {}
    todo = [node]
    needed: set[Node] = set()
    while todo:
        each = todo.pop()
        if each in needed:
            continue
        needed.add(each)
        if each.op not in ("call_function", "get_attr") or len(needed) > MOST_NODES:
            return None
        todo += each.all_input_nodes
    with torch.no_grad():
        for each in node.graph.nodes:
            if each in needed and each.op == "get_attr":
                values[each] = _attribute(graph, str(each.target))
            elif each in needed:
                args, kwargs = torch.fx.node.map_arg((each.args, each.kwargs), values.__getitem__)  # type: ignore[misc]
                values[each] = each.target(*args, **kwargs)  # type: ignore[operator]
    value: Tensor = values[node]
    return value


def _attribute(graph: Traced, target: str) -> Any:
    value: Any = graph.module
    for part in target.split("."):
        value = getattr(value, part)
    return value.detach().clone() if isinstance(value, Tensor) else value
