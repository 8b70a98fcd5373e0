"""Two implementations of one function, of which one copies what needs no copy."""

from torch import Tensor

from impls import with_attend


def _eager(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    return ((q * scale) @ k.transpose(-2, -1)).softmax(dim=-1) @ v


def _eager_with_a_copy(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    return _eager(q, k, v, scale).clone()


plain = with_attend(_eager)
copying = with_attend(_eager_with_a_copy)
