"""What would express a softmax that belongs to no core which `F.scaled_dot_product_attention` can compute."""

from impls.graph.cores import Softmax

WINDOWS = (
    "if these are parts of a window, F.scaled_dot_product_attention of all queries and keys computes the same with a "
    "mask that hides what is outside, and flex_attention without computing what is outside"
)
SCORES = "flex_attention can compute this, as a score_mod"

HINTS = {"pad ": WINDOWS, "cat of ": WINDOWS, "slice": WINDOWS, "tanh ": SCORES, "sigmoid ": SCORES}
"""Hints by the first word of the reason why there is no core."""


def hinted(unknown: Softmax) -> str:
    """Return why a softmax belongs to no core, and what would express it, if that is known."""
    return "; ".join([unknown.reason, *(words for first, words in HINTS.items() if unknown.reason.startswith(first))])
