"""What to write in place of a core: a call of `F.scaled_dot_product_attention` with what is known of it."""

from collections.abc import Sequence

from torch import nn

from bench.modules.graph.cores import Core
from bench.modules.graph.tracing import Traced, module_of, where

FUNCTION = "F.scaled_dot_product_attention"

Lines = tuple[str, ...]
"""A line and comments, or comments alone."""


def written(core: Core, graph: Traced) -> Lines:
    """Return the call that computes a core, and comments on its operands; empty if one operator computes it."""
    if core.is_fused:
        return ()
    at = core.lines or where(core.node)
    if isinstance(graph.inner.get_submodule(module_of(core.node)), nn.MultiheadAttention):
        return (f"# {at}: nn.MultiheadAttention calls {FUNCTION} if it is given need_weights=False",)
    mask = ["is_causal=True"] if core.causal else ["attn_mask=mask"] if core.masks else []
    notes = [f"in place of what {at} computes; q is {[*core.shapes[0]]}, k {[*core.shapes[1]]}, v {[*core.shapes[2]]}"]
    if core.masks and not core.causal:
        kinds = " + ".join(f"{each.kind} {each}" for each in core.masks)
        notes.append(f"mask is what is added to the scores, and minus infinity where they are hidden: {kinds}")
    if core.weights_are_used:
        notes.append(f"left out: {core.obstacle}")
    text = f"{FUNCTION}({', '.join(['q', 'k', 'v', *mask, f'scale={core.scale:.6g}'])})"
    return (text, *(f"# {each}" for each in notes))


def written_lines(cores: Sequence[Core], graph: Traced) -> list[Lines]:
    """Return what is written for each core."""
    return [written(core, graph) for core in cores]
