"""How a module computes its attention, in numbers: the calls of torch's function, and what computes cores beside it."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from impls.modules.wrapper import SDPAReplaced, Wrapper

FUSED = re.compile(r"_scaled_dot_product_(?!.*backward)\w*attention\w*|flex_attention")
"""The operators that compute a core in one."""

WHOLE = re.compile(r"_native_multi_head_attention|_transformer_encoder_layer_fwd")
"""The operators that compute a layer in one: the fast paths of torch's own modules."""

SOFTMAX = re.compile(r"_softmax|_safe_softmax|logsumexp|exp_?")
"""The operators that make weights of scores; `exp` may be any other."""


@dataclass(frozen=True)
class Counts:
    """The operators of one call of a module.

    `by_function` are the calls of torch's function, by one of its names in the module. Outside of them are `fused`
    operators that compute a core in one, those that compute a `whole` layer, and those that may be of `softmaxes`.
    """

    by_function: int
    fused: int
    whole: int
    softmaxes: int


def counted(model: Wrapper, *xs: Tensor) -> Counts:
    """Return the counts of one call on inputs, in the gradient mode that holds."""
    counting = _Counting()
    with SDPAReplaced(counting.standing_in_for(F.scaled_dot_product_attention), model.names), counting:
        model(*xs)
    fused, whole, softmaxes = (
        sum(kind.fullmatch(name) is not None for name in counting.names) for kind in (FUSED, WHOLE, SOFTMAX)
    )
    return Counts(counting.by_function, fused, whole, softmaxes)


class _Counting(TorchDispatchMode):
    """Notes operators outside of torch's function; one that only calls others is left to them."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own
        self.names: list[str] = []
        self.by_function = self._depth = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return false: no compiler runs under this mode, and skipping it would import it, which takes seconds."""
        return False

    def standing_in_for(self, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """Return a function that calls another one, whose operators don't count."""

        def seen(*args: Any, **kwargs: Any) -> Tensor:
            self.by_function += not self._depth
            self._depth += 1
            try:
                return function(*args, **kwargs)
            finally:
                self._depth -= 1

        return seen

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call an operator, and note it if it is none that only calls others."""
        if hasattr(func, "decompose"):
            with self:
                output = func.decompose(*args, **(kwargs or {}))
            if output is not NotImplemented:
                return output
        if not self._depth:
            self.names.append(getattr(func, "overloadpacket", func).__name__)
        return func(*args, **(kwargs or {}))
