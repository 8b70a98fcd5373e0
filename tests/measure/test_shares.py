"""The shares of a call in attention cores, in other softmaxes, and in layers."""

import pytest
import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile, record_function

import impls
from bench.measure import shares
from bench.measure.devices import device
from bench.measure.recorded import recorded
from bench.modules.graph.cores import Found, look
from bench.modules.graph.tracing import name
from bench.plan.device import CPU, CUDA
from tests.written_cores import Written


class Gated(nn.Module):
    """A layer with a core, one with a soft cap, and a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.plain, self.capped, self.gate = Written(), Written("soft cap"), nn.Linear(16, 2)

    def forward(self, x: Tensor) -> Tensor:
        """Return tokens `[B, N, C]` for tokens."""
        y: Tensor = (self.capped(self.plain(x)) @ x.mT @ x) * self.gate(x).softmax(-1)[..., :1]
        return y


X = torch.randn(4, 6, 16)


def labels(of: Found) -> dict[str, list[str]]:
    """Return the operators of a labelled graph by the label around them."""
    inside, label = dict[str, list[str]](), ""
    for node in shares.labelled(of).graph.nodes:
        if "_record_function_enter" in name(node):
            label = str(node.args[0])
        elif "_record_function_exit" in name(node):
            label = ""
        elif node.op == "call_function":
            inside.setdefault(label, []).append(name(node))
    return inside


def test_operators_have_the_label_of_their_part() -> None:
    """A core has its products and its softmax, as has another softmax; a gate has itself, a layer the rest."""
    of = look(Gated(), (X,))
    every = shares.parts(of)
    assert [type(part).__name__ for part in every] == ["Site", "Other", "Other", "str"]
    inside = labels(of)
    core, capped, gate, layer = (inside[f"{shares.PART}{number}"] for number in range(4))
    for operators in (core, capped):
        assert (operators.count("matmul"), operators.count("softmax")) == (2, 1)
    assert ("tanh" in capped, gate) == (True, ["softmax"])
    assert "linear" in layer
    assert {"matmul", "linear", "mul"} <= {*inside[""]}


def test_the_backward_pass_of_a_label_counts() -> None:
    """It is the backward pass of the operators inside; a label without gradients has none."""
    x = torch.randn(64, 64, requires_grad=True)
    with profile(activities=[ProfilerActivity.CPU]) as profiler, record_function(shares.CALL):
        with record_function("product"):
            y = (x @ x).sum()
        y.backward()
    (call,) = recorded(profiler, shares.CALL)
    (product,) = (event for event in call.host if event.name == "product")
    assert product.cpu_time_total * 1e-6 < shares.seconds(call, CPU)["product"] < shares.seconds(call, CPU)[shares.CALL]


def test_a_gpu_whose_kernels_are_not_seen_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of the CPU don't count for a GPU."""
    of = look(Gated(), (X,))
    seconds = shares.seconds
    monkeypatch.setattr(shares, "seconds", lambda call, _kind: seconds(call, CUDA))
    with pytest.raises(impls.Unsupported, match="saw no kernel"):
        shares.profiled(lambda: of.graph.module(X), of, device("cpu"))
