"""Self-attention with one head and no scale."""

from torch import Tensor, nn

from impls.attend import eager
from impls.catalogue import NO_MASK
from impls.contract import Attend, fitted


class SelfAttention(nn.Module):
    """Self-attention with one head, without scale, bias, output projection or skip.

    x `[B, N, dim]` -> y `[B, N, dim_v]`; queries and keys are `dim_k` wide.
    `mask` is "none" or "causal": then a token attends to itself and those before it.
    The weights have PyTorch's layout, `[out, in]`; the source multiplies by their transposes.
    Source: Karim, "Illustrated: Self-Attention" (2019).
    """

    attend: Attend
    asks = ()

    def __init__(self, dim: int, dim_k: int, dim_v: int, mask: str = NO_MASK) -> None:
        super().__init__()
        self.scale = 1.0
        self.query = nn.Linear(dim, dim_k, bias=False)
        self.key = nn.Linear(dim, dim_k, bias=False)
        self.value = nn.Linear(dim, dim_v, bias=False)
        self.mask = mask
        self.attend = fitted(eager.attend, self)

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's output `[B, N, dim_v]` for tokens x `[B, N, dim]`."""
        q, k, v = (projection(x).unsqueeze(1) for projection in (self.query, self.key, self.value))  # [B, 1, N, D]
        return self.attend(q, k, v, self.scale).squeeze(1)
