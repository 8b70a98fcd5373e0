"""The stages of a module by its graph: cores, other softmaxes and modules, with lines of source."""

import inspect
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import impls
from bench.measure import subjects, workload
from bench.measure.devices import device
from bench.plan.case import Point
from bench.plan.device import CPU
from bench.profiling import by_graph, capture
from bench.profiling.tables import operators, stages
from bench.store.profile import BACKWARD, CORE, FORWARD, ProfiledOperator, Stage
from tests.make.points import point


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


class OfValues(Blocks):
    """Blocks that look at values."""

    def forward(self, x: Tensor) -> Tensor:
        """Return other tokens if a number is large, as those of no input are that is measured."""
        y: Tensor = super().forward(x)
        return y * 2 if x.abs().max().item() > 9 else y


AT = point(layer=f"{__name__}:Blocks", batch=2, num_tokens=32, channels=16, num_heads=1)


def profiled(at: Point) -> tuple[dict[tuple[str, str], Stage], list[ProfiledOperator]]:
    """Return the stages, by name and direction, and the operators of the graph of a layer."""
    work = workload.make(at)
    with work.gradient_mode():
        call = subjects.step(by_graph.subject(work), work)
        taken = capture.capture(call, "graph call", device("cpu"), "host").middle_half
    return {(each.name, each.direction): each for each in stages(taken, at)}, [*operators(taken, CPU)]


def place(text: str) -> str:
    """Return the place of the line of this file that has a text."""
    lines, first = inspect.getsourcelines(Block)
    return f"{Path(__file__).relative_to(Path.cwd())}:{first + next(i for i, line in enumerate(lines) if text in line)}"


@pytest.fixture(autouse=True)
def _one_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in ("PAIRS", "LEAST_PAIRS"):
        monkeypatch.setattr(capture, number, 1)


@pytest.mark.parametrize("mode", ["inference", "train"])
def test_cores_softmaxes_and_modules_are_stages(mode: str) -> None:
    """Equal blocks are one stage each, in the order of the call; the children of another container are several."""
    of_call, _ = profiled(replace(AT, mode=mode))
    first, last = place("weights = "), place("o = weights").rpartition(":")[2]
    core, gate = f"{CORE} of blocks.*, {first}-{last}", f"softmax of no core in blocks.*, {place('self.gate(o)')}"
    forward = [name for name, direction in of_call if direction == FORWARD]
    assert [name for name in forward if name != "blocks.*"] == [
        "blocks.*.kv", core, "blocks.*.gate", gate, "rest.0", "rest.1", "Blocks",
    ]  # fmt: skip
    products = 2 * 2 * 4 * 16
    assert of_call[core, FORWARD].flops == products * 2 * (32 + 4)  # two products; the second block has 4 keys
    assert ((core, BACKWARD) in of_call) is (mode == "train")


def test_operators_have_their_lines() -> None:
    """The same operator of two lines is two, that of two blocks one, and the calls of all are those of one call."""
    _, every = profiled(AT)
    products = {each.line: each.calls for each in every if each.name == "aten::bmm"}
    assert products == {place("weights = "): 2, place("o = weights"): 2}
    sizes = {each.line: each.allocated_bytes for each in every if each.name == "aten::_softmax"}
    assert sizes == {place("weights = "): 4 * 2 * 4 * (32 + 4), place("self.gate(o)"): 2 * 4 * 2 * 4 * 16}


def test_a_module_that_decides_by_values_has_no_graph() -> None:
    """The stages of another call than the one that is timed would be wrong."""
    work = workload.make(replace(AT, layer=f"{__name__}:OfValues"))
    with work.gradient_mode(), pytest.raises(impls.Unsupported, match="decides by the values"):
        by_graph.subject(work)
