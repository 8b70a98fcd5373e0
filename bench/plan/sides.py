"""The two sides of a duel, as a request names them."""

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from bench.plan.case import AFTER, AS_IS, BEFORE
from bench.plan.errors import WrongRequest
from bench.plan.names import read

OPTIONS = ("layer", "checkout", "python")
"""What a side may have besides its implementation, each as an option."""

SAME, DIFFER = "same", "differ"
"""Whether the sides' weights have the same names and shapes in the same order; if not, outputs aren't compared."""

RULE = "a duel takes two sides that differ in their implementation, --layer, --checkout or --python"


@dataclass(frozen=True)
class Side:
    """One side of a duel: the name of its rows, and what it measures.

    `layer` is empty if the request's columns have it, `checkout` and `python` if they are this process's own.
    """

    name: str
    implementation: str
    layer: str = ""
    checkout: str = ""
    python: str = ""

    @property
    def given(self) -> dict[str, str]:
        """What the user gave for it, by name, as environment.json keeps it."""
        relative = {"python": os.path.relpath(self.python)} if self.python else {}
        return {name: value for name, value in vars(self).items() if value and name != "name"} | relative

    @property
    def words(self) -> str:
        """The side in words: `before (--checkout ../timm@main)`."""
        options = " ".join(f"--{name} {value}" for name, value in vars(self).items() if value and name in OPTIONS)
        return f"{self.name} ({options or self.implementation})" if self.name in (BEFORE, AFTER) else self.name


def sides_of(
    names: Sequence[str], layers: Sequence[str], checkouts: Sequence[str], pythons: Sequence[str]
) -> tuple[Side, Side]:
    """Return both sides; an implementation, a model or a layer that is given once belongs to both.

    Names of models, such as `timm:NAME`, are layers, and so are names with an input. Without an implementation modules
    stay as they are.
    Raises WrongRequest if something is given more than twice, or if nothing differs.
    """
    models = [name for name in names if _is_layer(name)]
    implementations = [name for name in names if name not in models]
    given = {
        "an implementation": implementations or [_usual([*models, *layers])],
        "--layer": [*models, *layers],
        "--checkout": checkouts,
        "--python": pythons,
    }
    for option, values in given.items():
        is_pair = option in ("--checkout", "--python")
        if len(values) > 2 or (is_pair and len(values) == 1):
            expected = "twice, before and then after" if is_pair else "at most twice"
            raise WrongRequest(f"{RULE}; give {option} {expected}, got {', '.join(values)}")
    pairs = [(values * 2)[:2] if values else ("", "") for values in map(list, given.values())]
    differing = [option for option, (first, second) in zip(given, pairs, strict=True) if first != second]
    if not (differing or checkouts or pythons):
        said = " ".join([*names, *(f"--layer {each}" for each in layers)])
        raise WrongRequest(f"{RULE}, got {said or 'nothing'}; compare one with itself by {itself()}")
    rows = pairs[0] if differing == ["an implementation"] else (BEFORE, AFTER)
    before, after = (Side(name, *values) for name, *values in zip(rows, *pairs, strict=True))
    return before, after


def itself() -> str:
    """Return the options that compare this interpreter with itself."""
    return " ".join([f"--python {shlex.quote(sys.executable)}"] * 2)


def _is_layer(name: str) -> bool:
    """Return whether a name must be a layer or model: a library's, or one with an input or a path."""
    return ":" in name and (read(name).shapes_itself or "at" in read(name).options)


def _usual(layers: Sequence[str]) -> str:
    """Return the default implementation: a duel of modules measures them as they are."""
    if not layers:
        raise WrongRequest(f"{RULE}; expected an implementation, a model or --layer")
    return AS_IS
