"""How many dimensions a module asks of its input, by the error that a call with another number of them ends with."""

import re
from collections.abc import Callable
from traceback import extract_tb

UNPACKED = re.compile(r"values to unpack \(expected (\d+)")
"""What Python says of `B, C, H, W = x.shape` for another number of dimensions, and of any other assignment."""

SAYS: tuple[tuple[str, Callable[[re.Match[str]], int]], ...] = (
    # einops
    (r"expected (\d+) dims\. Received \d+-dim", lambda found: int(found[1])),
    # norms: "expected 4D input (got 3D input)"; convolutions: "2D (unbatched) or 3D (batched) input"
    (r"[Ee]xpected (?:\d+D.* or )?(\d+)D (?:\(batched\) )?input", lambda found: int(found[1])),
    (r"to be \d+D or (\d+)D", lambda found: int(found[1])),
    # `nn.MultiheadAttention`
    (r"unbatched \d+D or batched (\d+)D tensor", lambda found: int(found[1])),
    # convolutions take an input of too few dimensions as one without a batch
    (r"weight of size \[([\d, ]+)\], expected input", lambda found: found[1].count(",") + 1),
    (r"input\.dim\(\) = \d+ is not equal to len\(dims\) = (\d+)", lambda found: int(found[1])),
    # `x.flatten(3)`
    (r"expected to be in range of \[-(\d+), \d+\], but got \1\)", lambda found: int(found[1]) + 1),
)
"""What errors of torch and einops say, and the dimensions that they mean."""

OF_SHAPES = re.compile(
    r"\b(sizes?|shapes?|dim(ension)?s?|dimensional|channels|features|elements|num_tokens|tokens|divisible)\b", re.I
)
"""Words by which errors of torch, Python and models speak of shapes."""


def asked_dimensions(error: Exception) -> int | None:
    """Return the dimensions that a module's error asks for; None if it says none."""
    text = " ".join(str(error).split())
    if found := UNPACKED.search(text):
        last = extract_tb(error.__traceback__)[-1].line or ""
        return int(found[1]) if ".shape" in last or ".size()" in last else None
    return next((dimensions(found) for says, dimensions in SAYS if (found := re.search(says, text))), None)


def is_of_shapes(error: Exception) -> bool:
    """Return whether a module's error is about the shape of its input, as far as its words tell it."""
    return asked_dimensions(error) is not None or bool(OF_SHAPES.search(str(error)))
