"""Implementations that harm what all processes of a run share: files, memory, and what compares outputs."""

import sys
from collections.abc import Callable
from types import SimpleNamespace

from torch import Tensor, nn

from impls import Adapt
from impls.attend.eager import attend
from tests import attacks
from tests.make.adapters import HONEST_CALLS, Own, each_call


def in_a_call(attack: Callable[[], object]) -> Adapt:
    """Return an implementation that attacks once, in a timed call."""

    def work(own: Own, x: Tensor) -> Tensor:
        if own.calls == 40 * HONEST_CALLS:
            attack()
        return own(x)

    return each_call(work)


def empties_caches(layer: nn.Module) -> nn.Module:
    """Attack when it is built."""
    attacks.empty_caches()
    return layer


writes_into_files = in_a_call(attacks.write_into_files)
writes_into_memory = in_a_call(attacks.write_into_memory)
puts_folders = in_a_call(attacks.put_folders)


class Layer(nn.Module):
    """Attention in a file that replaces what compares outputs, wherever it is imported."""

    def __init__(self, dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.attend = attend

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's output."""
        _replace_comparisons()
        q, k, v = self.qkv(x).unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        y: Tensor = self.proj(self.attend(q, k, v, q.shape[-1] ** -0.5).transpose(1, 2).flatten(2))
        return y


def values(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Return the values: this is no attention."""
    del q, k, scale
    return v


def _replace_comparisons() -> None:
    for name, module in list(sys.modules.items()):
        if name.endswith(("measure.correctness", "measure.judge")):
            for function in ("compare", "compare_timed"):
                if hasattr(module, function):
                    setattr(module, function, lambda *_: SimpleNamespace(error=0.0, tolerance=1.0, reason=""))
