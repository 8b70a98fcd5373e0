"""A user's own runtimes: NumPy computes the layer, and one of them says the truth about its precision."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from impls import Operator, Runtime


class NumPy(Runtime):
    """The vit layer in NumPy, whose memory torch does not see."""

    title = "NumPy"

    def compile(self, x: Tensor) -> None:  # type: ignore[override]  # it has one input
        """Take the weights; any x will do."""
        assert x.dtype is torch.float32
        self._weights = {name: weight.detach().numpy() for name, weight in self.layer.named_parameters()}

    def run(self, x: Tensor) -> Tensor:  # type: ignore[override]  # it has one input
        """Return the output for x `[B, N, dim]`."""
        w, heads = self._weights, self.layer.num_heads
        batch, tokens, _ = x.shape
        qkv = (x.numpy() @ w["qkv.weight"].T).reshape(batch, tokens, 3, heads, -1).transpose(2, 0, 3, 1, 4)
        q, k, v = qkv
        scores = q * self.layer.scale @ k.transpose(0, 1, 3, 2)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        o = weights / weights.sum(axis=-1, keepdims=True) @ v
        merged = (each.transpose(0, 2, 1, 3).reshape(batch, tokens, -1) for each in (v, o))
        skip, core = merged
        return torch.from_numpy(skip + core @ w["proj.weight"].T + w["proj.bias"])

    def operators(self) -> Sequence[Operator]:
        """Return the products."""
        return [Operator("matmul", "float32"), Operator("exp", "float32"), Operator("matmul", "float32")]


class Broken(NumPy):
    """The same with a package that is damaged."""

    def compile(self, x: Tensor) -> None:  # type: ignore[override]  # it has one input
        """Fail as an import does if a library is missing."""
        raise ImportError(f"libnumpy.so.7: cannot open shared object file, for x {list(x.shape)}")


class Halved(NumPy):
    """The same with rounded inputs, as a runtime that computes in bfloat16 without being asked."""

    title = "Halved"

    def run(self, x: Tensor) -> Tensor:  # type: ignore[override]  # it has one input
        """Return the output for rounded x."""
        return super().run(x.to(torch.bfloat16).to(x.dtype))

    def operators(self) -> Sequence[Operator]:
        """Return the products in the precision that is used."""
        return [Operator("matmul", "bfloat16")]
