"""The two sides of a duel: what differs, by the words of a request, and whose weights go where."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from bench.plan.case import AFTER, AS_IS, BEFORE
from bench.plan.errors import WrongRequest
from impls.catalogue import SOURCES

OPTIONS = ("layer", "checkout", "python")
"""What a side may have beside its implementation, each an option."""

RULE = "a duel takes two sides, which differ in their implementation, --layer, --checkout or --python"

Given = Mapping[str, str]
"""A side as environment.json keeps it: what was given, by name."""

Shapes = Sequence[tuple[str, Sequence[int]]]
"""The names and shapes of weights and buffers, in the order of a state dict."""

NAMES, ORDER = "names", "order"
"""How the weights of one module were found in another: by equal names, or by their order and shapes."""

WAYS = ("", ORDER, NAMES)
"""The ways, the worst first; empty if they were not found."""


@dataclass(frozen=True)
class Side:
    """One side of a duel: the name of its rows, and what is measured there.

    `layer` is empty if the columns of the request have it, `checkout` and `python` if they are those of this process.
    """

    name: str
    implementation: str
    layer: str = ""
    checkout: str = ""
    python: str = ""

    @property
    def given(self) -> Given:
        """What was given of it, by name."""
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
    """Return both sides: an implementation, a model or a layer that is given once is the same for both.

    Names of models, as `timm:NAME`, are layers. Without an implementation modules stay as they are.
    Raises WrongRequest if something is given more than twice, or if nothing differs.
    """
    models = [name for name in names if name.partition(":")[0] in SOURCES]
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
            expected = "twice, first before and then after" if is_pair else "at most twice"
            raise WrongRequest(f"{RULE}; give {option} {expected}; got {', '.join(values)}")
    pairs = [(values * 2)[:2] if values else ("", "") for values in map(list, given.values())]
    differing = [option for option, (first, second) in zip(given, pairs, strict=True) if first != second]
    if not differing and not pythons:
        said = " ".join(
            [*names, *(f"--layer {each}" for each in layers), *(f"--checkout {each}" for each in checkouts)]
        )
        raise WrongRequest(f"{RULE}, got {said or 'nothing'}; to compare one with itself: --python X --python X")
    rows = pairs[0] if differing == ["an implementation"] else (BEFORE, AFTER)
    before, after = (Side(name, *values) for name, *values in zip(rows, *pairs, strict=True))
    return before, after


def _usual(layers: Sequence[str]) -> str:
    """Return the implementation without a name: a duel of modules measures them as they are."""
    if not layers:
        raise WrongRequest(f"{RULE}; expected an implementation, a model or --layer")
    return AS_IS


def asked_for(before: Given, after: Given) -> list[str]:
    """Return the words that ask for these sides."""
    names = [of["implementation"] for of in (before, after)]
    names = [] if {*names} == {AS_IS} and "layer" in before else list(dict.fromkeys(names))
    options = [(f"--{name}", of[name]) for name in OPTIONS for of in (before, after) if name in of]
    layers = dict.fromkeys(option for option in options if option[0] == "--layer")
    return [*names, *chain(*layers, *(option for option in options if option not in layers))]


def same_weights(before: Shapes, after: Shapes) -> Mapping[str, str]:
    """Return the name before of each weight after, empty if they can't be told: by name, else by order and shape."""
    old, new = ({name: tuple(shape) for name, shape in of} for of in (before, after))
    if old == new:
        return {name: name for name in new}
    if [*old.values()] == [*new.values()]:
        return dict(zip(new, old, strict=True))
    return {}


def way(names: Mapping[str, str]) -> str:
    """Return how weights were found: NAMES, ORDER, or empty if they were not."""
    if not names:
        return ""
    return NAMES if all(new == old for new, old in names.items()) else ORDER
