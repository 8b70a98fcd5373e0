"""The stages of a layer by its graph: cores, other softmaxes and modules, with lines of source."""

import inspect
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from bench.plan.case import Point
from bench.plan.device import CPU
from bench.profiling.tables import operators, stages
from bench.store.profile import BACKWARD, CORE, FORWARD, ProfiledOperator
from tests.make.points import point
from tests.profiling.taken import captured


class Block(nn.Module):
    """Attention with learned queries, and a gate."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.q = nn.Parameter(torch.randn(4, dim))
        self.kv, self.gate = nn.Linear(dim, 2 * dim), nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        """Return 4 tokens for tokens `[B, N, C]`."""
        k, v = self.kv(x).chunk(2, dim=-1)
        weights = (self.q.expand(len(x), -1, -1) @ k.mT * 0.1).softmax(-1)
        o = weights @ v
        y: Tensor = o * self.gate(o).softmax(-1)
        return y


class Blocks(nn.Module):
    """Two blocks of one kind and a product after them."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(dim), Block(dim)])
        self.rest = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim))

    def forward(self, x: Tensor) -> Tensor:
        """Return 4 tokens for tokens `[B, N, C]`."""
        for block in self.blocks:
            x = block(x)
        y: Tensor = self.rest(x) + 1
        return y


AT = point(layer=f"{__name__}:Blocks", batch=2, num_tokens=32, channels=16, num_heads=1)


def stages_of(at: Point) -> dict[tuple[str, str], float]:
    """Return the times of the stages of the graph of a layer, by name and direction."""
    return {(each.name, each.direction): each.time_s for each in stages(captured(at, "graph").calls, CPU)}


def operators_of(at: Point) -> list[ProfiledOperator]:
    """Return the operators of the graph of a layer."""
    return [*operators(captured(at, "graph").profiler, captured(at, "graph").calls, CPU)]


def place(text: str) -> str:
    """Return the place of the line of this file that has a text."""
    lines, first = inspect.getsourcelines(Block)
    return f"{Path(__file__).relative_to(Path.cwd())}:{first + next(i for i, line in enumerate(lines) if text in line)}"


@pytest.mark.parametrize("mode", ["inference", "train"])
def test_cores_softmaxes_and_modules_are_stages(mode: str) -> None:
    """Equal blocks are one stage each, in the order of the call; the children of another container are several."""
    at = replace(AT, mode=mode)
    times = stages_of(at)
    first, last = place("weights = "), place("o = weights").rpartition(":")[2]
    core, gate = f"{CORE} of blocks.*, {first}-{last}", f"softmax of no core in blocks.*, {place('self.gate(o)')}"
    forward = [name for name, direction in times if direction == FORWARD]
    assert [name for name in forward if name != "blocks.*"] == [
        "blocks.*.kv", core, "blocks.*.gate", gate, "rest.0", "rest.1", "Blocks",
    ]  # fmt: skip
    assert ((core, BACKWARD) in times) is (mode == "train")
    assert 0 < sum(times.values()) <= captured(at, "graph").profiled_s


def test_operators_have_their_lines() -> None:
    """An operator on two lines is two, in two blocks one; calls and FLOPs are counted per call.

    The first block has 32 keys for each of 4 queries, the second 4.
    """
    products = {each.line: (each.calls, each.flops) for each in operators_of(AT) if each.name == "aten::bmm"}
    flops = 2 * 2 * 4 * 16 * (32 + 4)
    assert products == {place("weights = "): (2, flops), place("o = weights"): (2, flops)}
