"""The layers by their formulas, in float64 and without torch's help; what the CPU can't run."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from impls import IMPLEMENTATIONS, ViTAttention
from impls.lookup import versions
from tests.impls import oracle

Array = npt.NDArray[np.float64]

ROUNDING = 1e-12
"""What float64 arithmetic may differ by from itself in another order."""

LACKING = ("sdpa_efficient", "sdpa_cudnn")
"""Backends of scaled_dot_product_attention that exist on GPUs alone."""

ON_GPU = tuple(name for name, entry in IMPLEMENTATIONS.items() if entry.on_gpu)
"""What is refused without a GPU."""

RUNTIMES = tuple(name for name, entry in IMPLEMENTATIONS.items() if entry.adapter.startswith("runtimes."))
"""What another runtime computes: it is built for each shape, in inference alone, and starts threads in its process."""

INSTALLED = tuple(name for name in RUNTIMES if len(versions([name])) == len(IMPLEMENTATIONS[name].packages))
"""The runtimes whose packages are here."""

PACKED = tuple(name for name, entry in IMPLEMENTATIONS.items() if entry.adapter.startswith("attend.packed:"))
"""What takes packed items, and no layer whose items have one length."""

NOT_EAGER_ON_CPU = (*LACKING, *ON_GPU, *RUNTIMES, *PACKED, "flex")
"""Left out where every implementation is called at many shapes; flex compiles, and has no backward here."""

UNCOMPILED = [name for name in IMPLEMENTATIONS if not name.startswith("compiled") and name not in NOT_EAGER_ON_CPU]


def array(tensor: Tensor) -> Array:
    """Return a tensor's values in float64."""
    return np.asarray(tensor.detach().double().numpy())


def weights(layer: nn.Module) -> dict[str, Array]:
    """Return a layer's weights in float64."""
    return {name: array(value) for name, value in layer.state_dict().items()}


def softmax(scores: Array) -> Array:
    """Return the softmax over the last axis."""
    exponentials = np.exp(scores - scores.real.max(axis=-1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True))


def attend(q: Array, k: Array, v: Array, scale: float) -> Array:
    """Return `softmax((q·scale) kᵀ) v` for any leading dimensions."""
    return softmax(np.einsum("...nd,...md->...nm", q, k) * scale) @ v


def forward(x: Array, layer: ViTAttention, scale: float | None = None) -> Array:
    """Return the output `[B, N, chan]` of a layer without a mask for tokens x `[B, N, dim]`."""
    at = SimpleNamespace(num_heads=layer.num_heads, mask="none")
    return oracle.vit(at, {"input 1": x, **weights(layer)}, scale)


def split(tokens: Array, heads: int) -> Array:
    """Return `[B, N, H·D]` as `[B, H, N, D]`, the heads side by side in the channels."""
    return np.stack(np.split(tokens, heads, axis=-1), axis=1)


def merge(by_head: Array) -> Array:
    """Return `[B, H, N, D]` as `[B, N, H·D]`."""
    return np.concatenate(list(np.moveaxis(by_head, 1, 0)), axis=-1)


def distance(got: Tensor, expected: Array) -> float:
    """Return the largest difference, in units of the expected values' root mean square."""
    assert tuple(got.shape) == expected.shape
    size = np.sqrt(np.mean(expected**2)) or 1.0
    return float(np.abs(array(got) - expected).max() / size)


def error(y: Tensor, layer: ViTAttention, x: Tensor) -> float:
    """Return how far an output for x is off the formulas with the layer's weights."""
    return distance(y, forward(array(x), layer))


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return normal numbers that a test can feed to a layer."""
    return torch.randn(shape, dtype=torch.float64).to(dtype)


class Watch(TorchDispatchMode):
    """Keeps the operators that run inside it, each with the shape of a tensor that it returned."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.ran: list[tuple[str, tuple[int, ...]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator and note its result."""
        result = func(*args, **(kwargs or {}))
        tensors = [each for each in tree_leaves(result) if isinstance(each, Tensor)]
        self.ran += [(func.overloadpacket.__name__, tuple(each.shape)) for each in tensors]
        return result

    def shapes(self, operator: str) -> list[tuple[int, ...]]:
        """Return the shapes that an operator returned, in the order in which it ran."""
        return [shape for name, shape in self.ran if name == operator]
