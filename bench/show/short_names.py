"""Names of operators and kernels, short enough for a table.

A templated kernel of CUDA may have thousands of characters.
"""

from collections.abc import Iterable

LONGEST = 64
"""So many characters of a name are shown."""

NOISE = {
    "void ": "",
    "(anonymous namespace)::": "",
    "at::native::": "",
    "autograd::engine::evaluate_function: ": "autograd: ",
}
"""What long names are full of and nobody asks for, and what is said instead."""


def short(name: str) -> str:
    """Return a name as it is shown: a long one without its template's arguments, and cut where it is long even so."""
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
    """Return the names that are not shown whole, each once, in order."""
    return [name for name in dict.fromkeys(names) if short(name) != name]
