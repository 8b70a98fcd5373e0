"""The lines to write in place of cores: `F.scaled_dot_product_attention` of the operands as the source has them."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from bench.modules.graph.branches import not_taken, taken_by
from bench.modules.graph.cores import Core
from bench.modules.graph.expressing import Attention
from bench.modules.graph.forms import Formless
from bench.modules.graph.memory import Memory
from bench.modules.graph.operands import Operands, between
from bench.modules.graph.syntax import Expression, call_of, moved
from bench.modules.graph.syntax import written as text_of
from bench.modules.graph.terms import Terms
from bench.modules.graph.tracing import Traced, frames, module_of, name, where

FUNCTION = "F.scaled_dot_product_attention"

Lines = tuple[str, ...]
"""A line and comments, or comments alone."""

DROPOUT = ("dropout", "native_dropout")


@dataclass(frozen=True)
class Line:
    """A line, the mask in it, and what is said of its names and its cost."""

    text: str
    mask: str
    notes: tuple[str, ...]


def written(
    core: Core, graph: Traced, *, says_scale: bool = False, mask: str | None = None, other: Core | None = None
) -> Lines:
    """Return the line to write in place of a core's last product, and comments; without a line comments alone.

    Comments say where it stands, what the names are that the source doesn't have, and what the line leaves out. Empty
    if one operator computes the core. The scale is left out if it is SDPA's own, unless `says_scale`; a `mask` stands
    in place of that of the core, if the line serves an `other` core too.
    """
    if core.is_fused:
        return ()
    at = where(core.node)
    if isinstance(graph.inner.get_submodule(module_of(core.node)), nn.MultiheadAttention):
        used = f", but its weights are used: {core.obstacle}" if core.weights_are_used else ""
        return (f"# {at}: nn.MultiheadAttention calls {FUNCTION} if it is given need_weights=False{used}",)
    try:
        found = line(core, graph, says_scale=says_scale, mask=mask)
    except Formless as reason:
        return (f"# {at}: no line is known, because {reason}",)
    call = call_of(core.node)
    place = f"in place of `{text_of(core.node, call)}`, " if call else ""
    return (found.text, *(f"# {each}" for each in (f"{place}at {at}", *found.notes, *left_out(core, other))))


def line(core: Core, graph: Traced, *, says_scale: bool = False, mask: str | None = None) -> Line:
    """Return the line of a core; raises Formless."""
    assert isinstance(core.found, Attention)
    operands = Operands(core.found, graph.inner)
    (q, k, v), is_shared = operands.qkv()
    terms, sink = Terms(operands, Memory(graph.module.graph), q), core.found.scores.sink
    own, scale = terms.whole_mask(is_float=sink is not None), terms.whole_scale(says_all=says_scale)
    notes = [*operands.notes, *terms.notes(), *operands.of_widths()]
    if sink:
        own = terms.with_sink(own, sink)
        k, v = (f"F.pad({each}, (0, 0, 0, 1))" for each in (k, v))
        notes.append("a key and a value of zeros, and a column of the mask, stand for the scores that are no products")
    own = own if mask is None else mask
    options = [f"attn_mask={own}"] * bool(own) + [f"scale={scale}"] * bool(scale) + ["enable_gqa=True"] * is_shared
    text = operands.output(f"{FUNCTION}({', '.join([terms.queries, k, v, *options])})")
    return Line(text, own, tuple(notes))


def left_out(core: Core, other: Core | None = None) -> list[str]:
    """Return what a line doesn't have that the source has, and what could be left out of it."""
    notes = list[str]()
    if core.causal:
        notes.append("here the mask hides later keys and no others; if it always does: is_causal=True instead")
    if core.weights_are_used:
        notes.append(f"left out: {core.obstacle}")
    for node in between(core.found.chain[0], core.node):
        rate = node.args[1] if name(node) in DROPOUT and len(node.args) > 1 else 0
        if rate:
            notes.append(f"left out: dropout of {rate} in training, at {where(node)}; dropout_p is 0.0 otherwise")
    branches = [each for each in not_taken(core) if other is None or each in not_taken(other)]
    if branches:
        notes.append(f"left out: what this call did not take: {', '.join(branches)}")
    return notes


def written_lines(cores: Sequence[Core], graph: Traced) -> list[Lines]:
    """Return what is written for each core: the same for all cores of one place in the source.

    Where they need different lines, and no condition of the source chooses between them, it is what differs.
    """
    every = [written(core, graph) for core in cores]
    places = [tuple(frames(core.node)[:1]) for core in cores]
    for place in dict.fromkeys(places):
        own = [number for number, its in enumerate(places) if its == place and every[number]]
        if len({every[number][0] for number in own}) > 1:
            lines = _common([cores[number] for number in own], graph)
            every = [lines if number in own else before for number, before in enumerate(every)]
    return every


def _common(cores: Sequence[Core], graph: Traced) -> Lines:
    """Return a line that serves all of some cores; the scale of one of them, which is said, may serve the others."""
    kinds: dict[str, Core] = {}
    for core in cores:
        kinds.setdefault(written(core, graph, says_scale=True)[0], core)
    every = [*kinds.values()]
    if len(every) == 1:
        return written(every[0], graph, says_scale=True)
    if len(every) == len(("with", "without")):
        one, other = every
        if chosen := _chosen(one, other, graph) or _chosen(other, one, graph):
            return chosen
    differing = (f"#   {each}" for each in sorted(kinds))
    return (f"# {where(cores[0].node)}: its layers differ, so no line serves all of them:", *differing)


def _chosen(core: Core, other: Core, graph: Traced) -> Lines:
    """Return a line whose mask is chosen by the condition of the branch that one core took; empty without one."""
    try:
        own, its = line(core, graph, says_scale=True), line(other, graph, says_scale=True)
        rest = [line(each, graph, says_scale=True, mask="mask").text for each in (core, other)]
    except Formless:
        return ()
    if rest[0] != rest[1] or own.mask == its.mask:
        return ()
    paths = {id(module): path for path, module in graph.inner.named_modules()}
    for node in core.found.steps:
        test = taken_by(node, core, other)
        if test is not None and (here := moved(Expression(node, test), core.node, paths)):
            mask = f"{own.mask or None} if {here} else {its.mask or None}"
            return written(core, graph, says_scale=True, mask=mask, other=other)
    return ()
