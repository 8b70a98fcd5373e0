"""Names of operators and kernels, short enough for a table.

A templated kernel of CUDA may have thousands of characters.
"""

from collections.abc import Iterable

LONGEST = 64
"""Longer names are cut to this number of characters."""

NOISE = {
    "void ": "",
    "(anonymous namespace)::": "",
    "at::native::": "",
    "autograd::engine::evaluate_function: ": "autograd: ",
}
"""Frequent parts of long names that tell nothing, and what replaces them."""


def short(name: str) -> str:
    """Return a name of at most LONGEST characters: first without its template's arguments, then cut."""
    if len(name) <= LONGEST:
        return name
    plain = name
    for noise, word in NOISE.items():
        plain = plain.replace(noise, word)
    plain = plain or name
    # a name that begins with a bracket isn't a template's
    ends = [place for place in (plain.find("<"), plain.find("(")) if place > 0]
    plain = plain[: min(ends)] + "<…>" if ends else plain
    return plain if len(plain) <= LONGEST else f"{plain[: LONGEST - 1]}…"


def shortened(names: Iterable[str]) -> list[str]:
    """Return the names that `short` changes, each once, in order."""
    return [name for name in dict.fromkeys(names) if short(name) != name]
