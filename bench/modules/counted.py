"""How a module computes its attention, in numbers: the calls of torch's function, and what computes cores beside it."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from bench.modules.wrapper import Wrapper
from impls.sdpa_calls import SDPA, SDPAReplaced

FUNCTION, FUSED, WHOLE, SOFTMAX = "function", "fused", "whole", "softmax"

KINDS = {
    FUNCTION: SDPA,
    FUSED: r"_scaled_dot_product_(?!.*backward)\w*attention\w*|flex_attention",
    WHOLE: r"_native_multi_head_attention|_transformer_encoder_layer_fwd",
    SOFTMAX: r"_softmax|_safe_softmax|logsumexp|exp_?",
}
"""What tells how attention is computed: torch's function, an operator that computes a core in one, one that computes a
whole layer (the fast paths of torch's own modules), and those that make weights of scores; `exp` may be any other."""


def kind_of(operator: str) -> str:
    """Return the kind of an operator, empty for any other."""
    return next((kind for kind, names in KINDS.items() if re.fullmatch(names, operator)), "")


def counted(model: Wrapper, *xs: Tensor) -> Counter[str]:
    """Return the numbers of operators of each kind in a call on inputs, in the gradient mode that holds.

    A call of torch's function, by one of its names in the module, counts as FUNCTION alone, whatever it runs.
    """
    counting = _Counting()
    with SDPAReplaced(counting.standing_in_for(F.scaled_dot_product_attention), model.names), counting:
        model(*xs)
    return Counter(filter(None, map(kind_of, counting.names)))


class _Counting(TorchDispatchMode):
    """Notes operators, and torch's function in place of those inside; one that only calls others is left to them."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own
        self.names: list[str] = []
        self._is_inside = False

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return false: no compiler runs under this mode, and skipping it would import it, which takes seconds."""
        return False

    def standing_in_for(self, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """Return a function that calls torch's function, and notes it alone."""

        def seen(*args: Any, **kwargs: Any) -> Tensor:
            self._note(SDPA)
            before, self._is_inside = self._is_inside, True
            try:
                return function(*args, **kwargs)
            finally:
                self._is_inside = before

        return seen

    def _note(self, name: str) -> None:
        if not self._is_inside:
            self.names.append(name)

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call an operator, and note it if it is none that only calls others."""
        if hasattr(func, "decompose"):
            with self:
                output = func.decompose(*args, **(kwargs or {}))
            if output is not NotImplemented:
                return output
        self._note(getattr(func, "overloadpacket", func).__name__)
        return func(*args, **(kwargs or {}))
