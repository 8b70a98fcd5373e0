"""Lines to write in place of cores: pasted into a copy of the source, they compute what the source computes."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.fx import Node

from bench.modules.graph.cores import Core, found
from bench.modules.graph.source import written, written_lines
from bench.modules.graph.tracing import frames, traced
from tests.written_cores import EXPRESSIBLE, B, D, H, N, traced_layer

WITHOUT_NAMES = {"one query": "q_2"}
"""Cores with an operand that has no name where the last product stands, and the name that it gets."""

MODULE = '''"""Modules of tests."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Places(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(1, 2, 6, 6))

    def forward(self, scores):
        return scores + self.bias


class Layer(nn.Module):
    def __init__(self, heads=2, is_shifted=False):
        super().__init__()
        self.heads = heads
        self.mask = torch.where(torch.arange(6) < 4, 0.0, -100.0) if is_shifted else None
        self.qkv = nn.Linear(16, 48)
        self.temperature = nn.Parameter(torch.rand(heads, 1, 1) + 0.5)
        self.sinks = nn.Parameter(torch.randn(heads))
        self.drop = nn.Dropout(0.1)
        self.places = Places()

    def split(self, x):
        return self.qkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)

'''

LAYERS = {
    "branch": """
    def forward(self, x):
        q, k, v = self.split(x)
        weights = q @ k.mT * q.shape[-1] ** -0.5
        if self.mask is not None:
            weights = weights + self.mask
        weights = self.drop(weights.softmax(-1))
        return (weights @ v).transpose(1, 2).flatten(2)
""",
    "one of two": """
    def forward(self, x):
        return self.core(*self.split(x), self.mask).transpose(1, 2).flatten(2)

    def core(self, q, k, v, mask):
        weights = q @ k.mT * q.shape[-1] ** -0.5
        if mask is None:
            weights = weights * 1.0
        else:
            weights = weights + mask
        return weights.softmax(-1) @ v
""",
    "temperature": """
    def forward(self, x):
        q, k, v = self.split(x)
        weights = (q @ k.transpose(-2, -1) * self.temperature).softmax(dim=-1)
        return torch.matmul(weights, v).transpose(1, 2).flatten(2)
""",
    "flat": """
    def forward(self, x):
        q, k, v = (each.flatten(0, 1) for each in self.split(x))
        weights = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(k.size(-1))
        weights = weights.view(-1, self.heads, x.shape[1], x.shape[1]) * self.temperature
        weights = weights.view(-1, x.shape[1], x.shape[1]).softmax(-1)
        return torch.bmm(weights, v).unflatten(0, (len(x), -1)).transpose(1, 2).flatten(2)
""",
    "one head of keys": """
    def forward(self, x):
        q, k, v = self.split(x)
        q, k, v = q.transpose(1, 2), k[:, 0], v[:, 0]
        weights = torch.einsum("bnhd,bmd->bhnm", q, k).mul_(0.25).softmax(-1)
        equation = "bhnm,bmd->bnhd"
        return torch.einsum(equation, weights, v).flatten(2)
""",
    "sink": """
    def forward(self, x):
        q, k, v = self.split(x)
        weights = q @ k.mT / math.sqrt(k.size(-1))
        sinks = self.sinks.view(1, -1, 1, 1).expand(len(x), -1, x.shape[1], -1)
        weights = torch.cat([weights, sinks], dim=-1).softmax(-1)[..., :-1]
        return (weights @ v).transpose(1, 2).flatten(2)
""",
    "narrow values": """
    def forward(self, x):
        q, k, v = self.split(x)
        v = v[..., :3]
        return ((q @ k.mT / math.sqrt(k.size(-1))).softmax(-1) @ v).transpose(1, 2).flatten(2)
""",
    "labels": """
    def forward(self, x):
        return F.softmax(self.qkv(x), dim=1).transpose(1, 2) @ x
""",
    "names again": """
    def forward(self, x):
        q, k, v = self.split(x)
        scores = q @ k.mT
        del q
        q = scores.softmax(-1)
        return (q @ v).transpose(1, 2).flatten(2)
""",
    "in a module": """
    def forward(self, x):
        q, k, v = self.split(x)
        weights = self.places(q @ k.mT * q.shape[-1] ** -0.5).softmax(-1)
        return (weights @ v).transpose(1, 2).flatten(2)

""",
    "a number as bias": """
    def forward(self, x):
        q, k, v = self.split(x)
        weights = q @ k.mT * q.shape[-1] ** -0.5
        if self.mask is None:
            bias = 0
        else:
            bias = self.mask * 2
        weights = weights + bias
        return (weights.softmax(-1) @ v).transpose(1, 2).flatten(2)
""",
}


SHIFTED = (2, True)
"""The arguments of a layer with a mask."""


def module_of(path: Path, text: str) -> ModuleType:
    """Return the module that a text is, written to a file."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pasted(node: Node, line: str, path: Path) -> ModuleType:
    """Return a copy of the module whose source made a node, with a line in place of the node's expression."""
    file, first, last, start, end = frames(node)[0]
    assert last is not None
    lines = Path(file).read_bytes().splitlines(keepends=True)
    before = b"".join(lines[: first - 1]) + lines[first - 1][:start]
    after = lines[last - 1][end:] + b"".join(lines[last:])
    return module_of(path, (before + line.encode() + after).decode())


def lines_of_written(kind: str) -> tuple[Core, tuple[str, ...]]:
    """Return the only core of a layer with a hand-written core, and what is written for it."""
    graph = traced_layer(kind)[2]
    (core,) = found(graph).cores
    (lines,) = written_lines([core], graph)
    return core, lines


def every_line(module: nn.Module, x: Tensor) -> tuple[tuple[Core, ...], list[tuple[str, ...]]]:
    """Return the cores of a module's call, and what is written for them."""
    graph = traced(module, [x])
    cores = found(graph).cores
    return cores, written_lines(cores, graph)


def layers_of(kind: str, path: Path, *every: Any) -> nn.Module:
    """Return a layer of LAYERS, or several one after the other, by the arguments of each."""
    torch.manual_seed(0)
    module = module_of(path / "layers.py", MODULE + LAYERS[kind])
    layers = [module.Layer(*of) for of in every]
    return nn.Sequential(*layers).eval() if layers else module.Layer().eval()


def lines_of(kind: str, path: Path, *every: Any) -> list[tuple[str, ...]]:
    """Return what is written for a layer of LAYERS, or for several."""
    return every_line(layers_of(kind, path, *every), torch.randn(3, 6, 16))[1]


def notes(lines: Sequence[str], word: str) -> list[str]:
    """Return the comments with a word."""
    return [each for each in lines[1:] if word in each]


@pytest.mark.parametrize("kind", [kind for kind in EXPRESSIBLE if kind not in WITHOUT_NAMES])
def test_a_pasted_line_computes_the_same(kind: str, tmp_path: Path) -> None:
    """A copy of the source with the line gives the outputs of the source, at another input and another batch."""
    layer, (core, (line, *_)) = traced_layer(kind)[0], lines_of_written(kind)
    copy = pasted(core.node, line, tmp_path / "copy_of_cores.py").Written(kind)
    check_same(copy, layer, 4 * torch.randn(B, N, H * D))


def check_same(copy: nn.Module, layer: nn.Module, x: Tensor) -> None:
    """Check that a copy with the same weights computes the same."""
    copy.load_state_dict(layer.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(copy(x), layer(x), atol=2e-6, rtol=1e-4)


@pytest.mark.parametrize(
    "kind", ["branch", "temperature", "flat", "one head of keys", "sink", "narrow values", "labels"]
)
def test_a_pasted_line_computes_the_same_of_other_layers(kind: str, tmp_path: Path) -> None:
    """It holds for another length, other batches, and another number of heads."""
    layer = layers_of(kind, tmp_path)
    (core,), ((line, *_),) = every_line(layer, torch.randn(3, 6, 16))
    assert line.startswith("F.scaled_dot_product_attention(")
    module = pasted(core.node, line, tmp_path / "copy_of_layers.py")
    for heads in (2, 4) if kind != "one head of keys" else (2,):
        other = module_of(tmp_path / "layers_again.py", MODULE + LAYERS[kind]).Layer(heads).eval()
        check_same(module.Layer(heads).eval(), other, 2 * torch.randn(5, 9, 16))


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("plain", "q, k, v"),
        ("query scaled", "q * D**-0.5, k, v, scale=1.0"),
        ("boolean mask", "q, k, v, attn_mask=~HIDDEN"),
        ("mask that shows", "q, k, v, attn_mask=~HIDDEN"),
        ("two boolean masks", "q, k, v, attn_mask=~HIDDEN & CAUSAL"),
        ("bias", "q, k, v, attn_mask=2.0 * BIAS"),
        ("bias first", "q, k, v, attn_mask=BIAS * 0.5, scale=0.5"),
        ("relative", "q, k, v, attn_mask=q @ RELATIVE.mT"),
        ("bias and boolean mask", "q, k, v, attn_mask=BIAS.masked_fill(HIDDEN, torch.finfo(v.dtype).min)"),
        ("learned temperature", "q / LEARNED_TEMPERATURE, k, v, scale=1.0"),
        ("largest first", "q, k, v, attn_mask=BIAS"),
        ("heads last", "q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), attn_mask=BIAS"),
        ("queries on the right", "q, k, v, attn_mask=BIAS"),
        ("shared keys", "q, k[:, 0].unsqueeze(1), v[:, 0].unsqueeze(1), attn_mask=BIAS, enable_gqa=True"),
    ],
)
def test_operands_are_those_of_the_source(kind: str, arguments: str) -> None:
    """A turn that the source's product needs isn't written, and the scale is left out if it is SDPA's own."""
    _, (line, *_) = lines_of_written(kind)
    assert line.partition("(")[2].startswith(f"{arguments})")


@pytest.mark.parametrize(("kind", "name"), WITHOUT_NAMES.items())
def test_an_operand_without_a_name_gets_one_that_the_source_has_not(kind: str, name: str) -> None:
    """A comment says what it is, with its line and its shape."""
    _, lines = lines_of_written(kind)
    assert f"({name}, k, v" in lines[0]
    (note,) = notes(lines, f"# {name}: ")
    assert "`q` at " in note
    assert "written_cores.py:" in note
    assert f"[{B}, {H}, 1, {D}]" in note


LEFT_OUT = "did not take"


@pytest.mark.parametrize(
    ("kind", "every", "line", "said"),
    [
        ("names again", [], "(q_2, k, v", {}),
        ("in a module", [], "(q, k, v, attn_mask=self.places.bias)", {}),
        ("branch", [], "(q, k, v)", {LEFT_OUT: "`if self.mask is not None`", "dropout": "0.1"}),
        ("branch", [SHIFTED], "attn_mask=self.mask", {LEFT_OUT: None}),
        ("a number as bias", [], "(q, k, v)", {LEFT_OUT: ": the `else` of `if self.mask is None`"}),
        ("narrow values", [], "(q, k, v)", {"wide": "F.pad(v, (0, 5))"}),
    ],
)
def test_a_line_has_names_that_hold_and_says_what_it_leaves_out(
    kind: str, every: list[Any], line: str, said: dict[str, str | None], tmp_path: Path
) -> None:
    """A name may be bound to something else there, or stand in a module inside; what computes nothing may have run."""
    (lines,) = lines_of(kind, tmp_path, *every)
    assert line in lines[0]
    for word, what in said.items():
        found_notes = notes(lines, word)
        assert len(found_notes) == (what is not None)
        assert all(str(what) in each for each in found_notes)


def test_layers_of_one_source_that_differ_have_no_common_line(tmp_path: Path) -> None:
    """Both lines are said, as comments."""
    every = lines_of("one of two", tmp_path, (), SHIFTED)
    assert every[0] == every[1]
    assert all(line.startswith("#") for line in every[0])
    assert len(notes(every[0], "F.scaled_dot_product_attention(q, k, v")) == 2
    assert len(notes(every[0], "attn_mask=mask")) == 1


def test_layers_between_which_a_condition_chooses_have_a_common_line(tmp_path: Path) -> None:
    """The line has the condition of the branch for the mask, and computes what both compute."""
    both = layers_of("branch", tmp_path, (), SHIFTED)
    x = torch.randn(3, 6, 16)
    cores, every = every_line(both, x)
    assert every[0] == every[1]
    assert "attn_mask=self.mask[None, None, None] if self.mask is not None else None" in every[0][0]
    assert notes(every[0], "did not take") == []
    copy = pasted(cores[0].node, every[0][0], tmp_path / "copy_of_layers.py")
    others = nn.Sequential(copy.Layer(), copy.Layer(is_shifted=True)).eval()
    check_same(others, both, 2 * x)


def test_one_scale_serves_layers_with_one_head_and_with_several(tmp_path: Path) -> None:
    """The scale of one head may be that of all heads' width, so it is said, and then for all layers of the source."""
    every = lines_of("branch", tmp_path, (1,), (2,))
    assert every[0][0] == every[1][0]
    assert "scale=q.shape[-1] ** -0.5" in every[0][0]


def test_a_causal_mask_is_said_to_be_one() -> None:
    """It is said for masks that hide later keys alone."""
    for kind, is_causal in (("causal", True), ("causal that is added", True), ("boolean mask", False)):
        assert bool(notes(lines_of_written(kind)[1], "is_causal=True")) == is_causal


def test_torchs_own_layer_is_told_to_leave_weights() -> None:
    """Its source is torch's, so there is no line."""
    layer = nn.MultiheadAttention(16, 2, batch_first=True).eval()
    graph = traced(lambda x: layer(x, x, x), [torch.randn(3, 6, 16)], layer)
    (core,) = found(graph).cores
    (line,) = written(core, graph)
    assert line.startswith("#")
    assert "need_weights=False" in line


def test_a_fused_core_has_no_line() -> None:
    """One operator computes it already."""
    graph = traced(nn.functional.scaled_dot_product_attention, [torch.randn(2, 3, 4, 8)] * 3)
    (core,) = found(graph).cores
    assert written(core, graph) == ()
