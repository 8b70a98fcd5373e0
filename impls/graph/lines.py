"""The lines to write in the source of a model, where several layers share a line of source."""

from collections.abc import Sequence

from impls.graph.branches import taken_by
from impls.graph.cores import Core
from impls.graph.expressing import Attention
from impls.graph.forms import Formless
from impls.graph.source import line, written
from impls.graph.syntax import Expression, moved
from impls.graph.tracing import FRAMES, Traced, where

Lines = tuple[str, ...]


def written_lines(cores: Sequence[Core], graph: Traced) -> list[Lines]:
    """Return what is written for each core: the same for all cores of one place in the source.

    Where they need different lines, and no condition of the source chooses between them, it is what differs.
    """
    every = [written(core, graph) for core in cores]
    places = [str(core.node.meta[FRAMES][:1]) for core in cores]
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
        chosen = _chosen(one, other, graph) or _chosen(other, one, graph)
        if chosen:
            return chosen
    differing = (f"#   {each}" for each in sorted(kinds))
    return (f"# {where(cores[0].node)}: its layers differ, so no line serves all of them:", *differing)


def _chosen(core: Core, other: Core, graph: Traced) -> Lines:
    """Return a line whose mask is chosen by the condition of the branch that one core took; empty without one."""
    assert isinstance(core.found, Attention)
    assert isinstance(other.found, Attention)
    try:
        own, its = line(core, graph, says_scale=True), line(other, graph, says_scale=True)
        rest = [line(each, graph, says_scale=True, mask="mask").text for each in (core, other)]
    except Formless:
        return ()
    if rest[0] != rest[1] or own.mask == its.mask:
        return ()
    paths = {id(module): path for path, module in graph.inner.named_modules()}
    for term in core.found.scores.terms:
        test = taken_by(term.at, (core.found.first.node, core.node), (other.found.first.node, other.node))
        here = moved(Expression(term.at, test), core.node, paths) if test is not None else None
        if here is not None:
            mask = f"{own.mask or None} if {here} else {its.mask or None}"
            return written(core, graph, says_scale=True, mask=mask, other=other)
    return ()
