"""sdpa under seven names, some with more real work, so that the order of their times is known in advance.

The further work is rows of a projection that add a share of the layer's floating-point operations.
"""

from functools import partial

import torch
from torch import Tensor, nn

from impls import Implementation, with_attend
from impls.attend.sdpa import attend

SHARES = {"same": 0.0, "same_2": 0.0, "same_3": 0.0, "three": 0.03, "three_2": 0.03, "ten": 0.1, "ten_2": 0.1}
"""The share of further work of each name."""


def _with_work(layer: nn.Module, *, share: float) -> Implementation:
    """Return the layer with sdpa and this share of further work."""
    computed = with_attend(attend)(layer)
    first = next(layer.parameters())
    weight = torch.randn(first.shape, dtype=first.dtype, device=first.device).T  # [C, 3C]

    def call(x: Tensor) -> Tensor:
        rows = x.flatten(0, 1)
        channels, tokens = weight.shape[0], x.shape[1]
        # projections take 4 C² products for each row, queries and keys, weights and values 2 N C
        work = share * len(rows) * (4 * channels**2 + 2 * tokens * channels)
        torch.mm(rows[: round(work / weight.numel())], weight)
        return computed(x)

    return call


same = same_2 = same_3 = partial(_with_work, share=SHARES["same"])
three = three_2 = partial(_with_work, share=SHARES["three"])
ten = ten_2 = partial(_with_work, share=SHARES["ten"])
