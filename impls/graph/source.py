"""The line to write in place of a core: `F.scaled_dot_product_attention` of the operands as the source has them."""

from collections.abc import Sequence

from torch import nn

from impls.graph.branches import not_taken
from impls.graph.cores import Core
from impls.graph.expressing import Attention
from impls.graph.forms import Formless
from impls.graph.memory import Memory
from impls.graph.operands import Operands, between
from impls.graph.syntax import call_of
from impls.graph.syntax import written as text_of
from impls.graph.terms import Terms
from impls.graph.tracing import Traced, module_of, name, where

FUNCTION = "F.scaled_dot_product_attention"

DROPOUT = ("dropout", "native_dropout")


def written(core: Core, graph: Traced, *, says_scale: bool = False) -> tuple[str, ...]:
    """Return the line to write in place of a core's last product, and comments; without a line comments alone.

    The usual scale is left out, unless `says_scale`. Comments say where it stands, what the names are that the source doesn't have, and what the line leaves out. Empty
    if one operator computes the core.
    """
    if core.is_fused:
        return ()
    if isinstance(graph.inner.get_submodule(module_of(core.node)), nn.MultiheadAttention):
        return (
            f"# {where(core.node)}: nn.MultiheadAttention computes no weights with need_weights=False, and is fused",
        )
    assert isinstance(core.found, Attention)
    try:
        text, notes = _line(Operands(core.found, graph.inner), Memory(graph.module.graph), says_scale=says_scale)
    except Formless as reason:
        return (f"# {where(core.node)}: no line is known, because {reason}",)
    call = call_of(core.node)
    place = f"in place of `{text_of(core.node, call)}`, " if call else ""
    every = [f"{place}at {where(core.node)}", *notes]
    if core.causal:
        every.append("here the mask hides later keys and no others; if it always does: is_causal=True instead")
    if core.weights_are_used:
        every.append(f"left out: {core.obstacle}")
    every += left_out(core.found)
    return (text, *(f"# {each}" for each in every))


def _line(operands: Operands, memory: Memory, *, says_scale: bool) -> tuple[str, list[str]]:
    """Return the line, and what is said of its names and its cost."""
    (q, k, v), is_shared = operands.qkv()
    terms, sink = Terms(operands, memory, q), operands.core.scores.sink
    mask, scale = terms.whole_mask(is_float=sink is not None), terms.whole_scale(says_all=says_scale)
    notes = []
    if sink:
        mask = terms.with_sink(mask, sink)
        k, v = (f"F.pad({each}, (0, 0, 0, 1))" for each in (k, v))
        notes = ["a key and a value of zeros, and a column of the mask, stand for the scores that are no products"]
    options = [f"attn_mask={mask}"] * bool(mask) + [f"scale={scale}"] * bool(scale)
    options += ["enable_gqa=True"] * is_shared
    text = operands.output(f"{FUNCTION}({', '.join([terms.queries, k, v, *options])})")
    return text, [*operands.notes, *notes, *terms.notes(), *operands.of_widths()]


def written_lines(cores: Sequence[Core], graph: Traced) -> list[tuple[str, ...]]:
    """Return what is written for each core; where cores of one line of source need different lines, what differs."""
    every = [written(core, graph) for core in cores]
    of_place = _by_place(cores, every)
    if any(len(lines) > 1 for lines in of_place.values()):  # a scale that one of them needs may serve all
        said = [
            written(core, graph, says_scale=True) if len(of_place.get(where(core.node), ())) > 1 else lines
            for core, lines in zip(cores, every, strict=True)
        ]
        every, of_place = said, _by_place(cores, said)
    return [
        _differing(where(core.node), of_place[where(core.node)])
        if lines and len(of_place[where(core.node)]) > 1
        else lines
        for core, lines in zip(cores, every, strict=True)
    ]


def _by_place(cores: Sequence[Core], every: Sequence[tuple[str, ...]]) -> dict[str, set[str]]:
    """Return the lines that are written at each place of the source."""
    of_place: dict[str, set[str]] = {}
    for core, lines in zip(cores, every, strict=True):
        if lines:
            of_place.setdefault(where(core.node), set()).add(lines[0])
    return of_place


def _differing(at: str, lines: set[str]) -> tuple[str, ...]:
    return (f"# {at}: its layers differ, so no line serves all of them:", *(f"#   {each}" for each in sorted(lines)))


def left_out(core: Attention) -> list[str]:
    """Return what a line doesn't have that the source has."""
    notes = []
    assert core.scores.softmax is not None
    for node in between(core.scores.softmax, core.last.node):
        rate = node.args[1] if name(node) in DROPOUT and len(node.args) > 1 else 0
        if rate:
            notes.append(f"left out: dropout of {rate} in training, at {where(node)}; dropout_p is 0.0 otherwise")
    branches = not_taken(core.first.node, core.last.node)
    if branches:
        notes.append(f"left out: what this call did not take: {', '.join(branches)}")
    return notes
