"""The operands of a core as the source has them where the core's last product is."""

import ast
from collections.abc import Sequence

from torch import nn
from torch.fx import Node

from bench.modules.graph.dimensions import Dim, Dims
from bench.modules.graph.expressing import Attention
from bench.modules.graph.forms import Axis, Formless, Shaped, formed, grouped, method, parse, turned
from bench.modules.graph.products import Labels, Product
from bench.modules.graph.syntax import Expression, argument, bound, is_tensor, moved, origin, sizes_of_view
from bench.modules.graph.tracing import dtype, name, shape, where

ITEMS_AND_HEADS = 2
"""The number of leading dimensions that SDPA's kernels ask for."""

VIEWS = ("view", "reshape", "unflatten")


class Operands:
    """The names and expressions of one core, and which dimensions of the scores they hold.

    Leading dimensions are L0, L1 and so on, queries N, keys M, the width of queries D, that of values V.
    """

    def __init__(self, core: Attention, inner: nn.Module) -> None:
        self.paths = {id(module): path for path, module in inner.named_modules()}
        self.core, self.first, self.last = core, core.first.node, core.last.node
        self.notes: list[str] = []
        self.named: dict[Node, str] = {}
        self.own = [label for label in core.first.out if label not in (core.query_label, core.key_label)]
        self.lead = self._lead()
        self.slots = {**self.lead, "N": core.rows, "M": core.columns}
        """The dimensions of the scores by their names."""
        self.form = [*self.lead, *("_0", "_1")[len(self.lead) :]]
        """The leading dimensions of what SDPA gets; those of size 1 that the core doesn't have begin with _."""
        self.of_first = {label: self._axis(label) for label in core.first.sizes}
        weights = dict(zip(core.weights, self.placed(tuple(core.weights.values())), strict=True))
        self.of_last = {**weights, core.summed_label: ("M",), core.value_label: ("V",)}
        """The named dimensions of the labels of both products."""
        self.counts = {name: str(dim.size) for name, dim in self.slots.items()}
        self.dtype = dtype(core.value)
        self.dtype_text = str(self.dtype)
        self.width = core.width

    def _lead(self) -> dict[str, Dim]:
        core = self.core
        dims = core.label_dims(tuple(self.own))
        if len(dims) < ITEMS_AND_HEADS <= len(core.lead) and _are_apart(core, dims):
            dims = core.lead
        return {f"L{place}": each for place, each in enumerate(dims)}

    def placed(self, dims: Dims) -> list[Axis]:
        """Return which named dimensions each dimension of scores holds, or is a part of."""
        axes: list[Axis] = [
            tuple(name for name, each in self.slots.items() if min(each.size, dim.size) > 1 and dim.overlaps(each))
            for dim in dims
        ]
        rest = [name for name, each in self.slots.items() if each.size == 1]
        for place in reversed(range(len(dims))):
            if not axes[place] and rest:
                axes[place] = (rest.pop(),)
        return axes

    def moved(self, expression: Expression | None) -> str | None:
        """Return the text of an expression that has the same value at the last product; None without one."""
        return moved(expression, self.last, self.paths) if expression else None

    def said(self, expression: Expression | None, node: Node, word: str) -> str:
        """Return an expression that has a node's value at the last product.

        Without one it is a name that the source doesn't use there, and a note says what it is.
        """
        here = self.moved(expression)
        if here is not None:
            return here
        if node not in self.named:
            own = {*bound(self.last), *self.named.values()}
            free = next(each for each in (word, *(f"{word}_{number}" for number in range(2, 99))) if each not in own)
            self.named[node] = free
            what = f"`{expression.text}` at {where(expression.node)}" if expression else f"what {where(node)} makes"
            self.notes.append(f"{free}: {what}, {list(shape(node))} in this call")
        return self.named[node]

    def qkv(self) -> tuple[list[str], bool]:
        """Return queries, keys and values as [B, H, N, D], and whether keys and values have fewer heads."""
        core = self.core
        if len(core.first.summed) > 1:
            raise Formless("the first product sums over several dimensions")
        nodes, ends = (core.query, core.key, core.value), (("N", "D"), ("M", "D"), ("M", "V"))
        of = (core.first, core.of_query), (core.first, core.of_key), (core.last, core.of_value)
        found = [self._operand(*each) for each in zip("qkv", nodes, *zip(*of, strict=True), strict=True)]
        self._count(found[::-1])
        self.dtype_text = next(filter(None, map(self._dtype_of, reversed(found))), self.dtype_text)
        heads = self.form[-1]
        is_shared = heads in found[0].real - found[1].real - found[2].real
        wanted = {name for name, dim in self.lead.items() if dim.size > 1}
        lines = []
        for shaped, node, (row, width) in zip(found, nodes, ends, strict=True):
            text, place = formed(shaped, [*self.form, row, width], self.counts), shaped.axes.index((width,))
            is_far = shaped.sizes[place] > 1 and node.meta["val"].stride()[place] != 1
            if is_far and core.values.size == self.width:  # fused kernels ask for a width that is innermost in memory
                text = method(text, "contiguous")
            if dtype(node) != self.dtype:
                text = method(text, "to", self.dtype_text)
            lacks = wanted - shaped.real - ({heads} if is_shared else set())
            if lacks:
                sizes = (self.counts[each] if each in lacks else "-1" for each in self.form)
                text = method(text, "expand", *sizes, "-1", "-1")
            more = len(self.form) - ITEMS_AND_HEADS
            lines.append(method(text, "flatten", 0, more) if more > 0 else text)
        return lines, is_shared

    def of_widths(self) -> list[str]:
        """Return what would let a fused kernel take values that are narrower than queries."""
        values = self.core.values.size
        if values >= self.width:
            return []
        more = self.width - values
        return [
            f"values are {values} wide, queries {self.width}: if no kernel takes that, F.pad(v, (0, {more})) "
            f"and [..., :{values}] of the output compute the same"
        ]

    def _dtype_of(self, operand: Shaped) -> str:
        """Return the text of the type of a tensor from which an operand's expression makes it; empty without one."""
        tree = origin(parse(operand.text))
        is_known = isinstance(tree, ast.Name) and (is_tensor(tree.id, self.last) or tree.id in self.named.values())
        return f"{ast.unparse(tree)}.dtype" if is_known or isinstance(tree, ast.Attribute) else ""

    def _operand(self, word: str, node: Node, of: Product, labels: Labels) -> Shaped:
        """Return an operand of a product."""
        number = (labels == of.of_right) + (name(of.node) == "baddbmm")
        text = self.said(argument(of.node, number), node, word)
        axes = self.of_first if of is self.core.first else self.of_last
        return Shaped(text, tuple(axes[each] for each in labels), shape(node))

    def _axis(self, label: str) -> Axis:
        """Return the named dimensions of a label of the first product."""
        core = self.core
        own = {core.query_label: "N", core.key_label: "M", **dict.fromkeys(core.first.summed, "D")}
        if label in own:
            return (own[label],)
        if len(self.own) == len(self.lead):
            return ([*self.lead][self.own.index(label)],)
        (dim,) = core.label_dims((label,))
        return tuple(name for name, each in self.lead.items() if dim.overlaps(each))

    def _count(self, found: Sequence[Shaped]) -> None:
        """Find the text of the size of each dimension that an operand has by itself; else it is that of this call."""
        for each in sorted(found, key=lambda each: isinstance(parse(each.text), ast.Name)):
            for place, axis in enumerate(each.axes):
                if len(axis) == 1 and each.sizes[place] > 1:
                    self.counts[axis[0]] = f"{grouped(each.text)}.shape[{place}]"
        if any(len(axis) > 1 for each in found for axis in each.axes):
            self._count_heads()

    def _count_heads(self) -> None:
        """Look for the number of heads in a view of the scores, if operands have items and heads in one dimension."""
        *_, (name_of_heads, heads) = self.lead.items()
        for node in between(self.first, self.last):
            if name(node) in VIEWS and len(shape(node)) > len("HNM") and shape(node)[-3] == heads.size:
                sizes = sizes_of_view(node)
                text = self.moved(sizes[-3]) if len(sizes) == len(shape(node)) else None
                if text is not None:
                    self.counts[name_of_heads] = text
                    return
        self.notes.append(f"{heads.size} is the number of heads in this call")

    def output(self, text: str) -> str:
        """Return the output of SDPA with the dimensions that the last product's has."""
        form = self.form
        axes = [self.of_last[each] for each in self.core.last.out]
        if len(form) > ITEMS_AND_HEADS:
            more = form[: len(form) - 1]
            text = method(text, "unflatten", 0, f"({', '.join(self.counts[each] for each in more)})")
        if form[0] == "_0":
            text = f"{text}[0, 0]"
        elif form[1] == "_1":
            text = method(text, "squeeze", 1)
        have = [each for each in (*form, "N", "V") if not each.startswith("_")]
        wanted = [each for axis in axes for each in axis]
        if sorted(wanted) != sorted(have):
            raise Formless(f"its output has other dimensions: {', '.join(wanted)}")
        text = turned(text, [have.index(each) for each in wanted])
        for place, axis in enumerate(axes):
            if len(axis) > 1:
                text = method(text, "flatten", place, place + len(axis) - 1)
        return text


def _are_apart(core: Attention, dims: Dims) -> bool:
    """Return whether a term, or a column beside the scores, needs items and heads apart, which operands don't have."""
    terms = [(dim, size) for term in core.scores.terms for dim, size in zip(term.dims, term.sizes, strict=True)]
    return core.scores.sink is not None or any(
        size > 1 and dim not in dims and any(dim.is_inside(each) for each in dims) for dim, size in terms
    )


def between(first: Node, last: Node) -> list[Node]:
    """Return the operators from one to another."""
    nodes = [*first.graph.nodes]
    return [each for each in nodes[nodes.index(first) : nodes.index(last) + 1] if each.op == "call_function"]
