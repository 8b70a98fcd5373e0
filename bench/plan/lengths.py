"""The lengths of the items of a batch: a distribution by its name, whose quantiles they are, so that no draw decides.

The longest item of a distribution has all tokens of the point; that of a list or a file may have fewer, and is padded
to them. A file becomes a list, so that results don't need it.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.plan.errors import WrongRequest
from impls.catalogue import FIXED

LIST, FILE = "list:", "file:"
"""How a value of `lengths` begins that has a list of them, or a file."""

SHORT, SHORT_ITEMS = 1 / 8, 3 / 4
"""`bimodal`: so many of the items are short prompts, with this share of the longest item's tokens."""

RULE = (
    "fixed, uniform, uniform:LEAST with the least share of the longest such as uniform:0.8, zipf, bimodal, "
    "list:A+B+… with a length for each item, or file:PATH with a length in each line"
)

FORM = re.compile(r"fixed|uniform(:(0?\.\d+|1(\.0*)?))?|zipf|bimodal|list:\d+(\+\d+)*|file:.+")

SHARES: Mapping[str, Callable[[float, int, float], float]] = {
    "uniform": lambda at, _longest, least: least + (1 - least) * at,
    "zipf": lambda at, longest, _least: longest ** (at - 1),
    "bimodal": lambda at, _longest, _least: SHORT if at < SHORT_ITEMS else 1.0,
}
"""The quantile of a distribution, as a share of the longest item, `at` a place from 0 to 1.

`zipf` has the chance 1/n of the length n (Zipf's law with the exponent 1), which is uniform in its logarithm.
"""


def of_items(lengths: str, batch: int, longest: int) -> tuple[int, ...]:
    """Return the tokens of each item of a batch, the longest first."""
    if lengths == FIXED:
        return (longest,) * batch
    if lengths.startswith(LIST):
        return tuple(sorted(map(int, lengths.removeprefix(LIST).split("+")), reverse=True))
    name, _, least = lengths.partition(":")
    shares = [SHARES[name]((item + 0.5) / batch, longest, float(least or 0)) for item in range(batch)]
    return (longest, *(max(1, round(longest * share)) for share in reversed(shares[:-1])))


def as_list(values: Mapping[str, Any]) -> str:
    """Return the lengths of a point, a file's as a list: its longest, and quantiles for the other items.

    Raises WrongRequest for a file that can't be read or has other lines, and for a length that a point can't have.
    """
    lengths, batch, longest = values["lengths"], values["batch"], values["num_tokens"]
    if lengths.startswith(FILE):
        found = sorted(_read(lengths.removeprefix(FILE)))
        _check(lengths, found, longest)
        chosen = [found[int((item + 0.5) / batch * len(found))] for item in range(batch - 1)]
        return _listed((found[-1], *reversed(chosen)))
    if lengths.startswith(LIST):
        given = of_items(lengths, batch, longest)
        _check(lengths, given, longest)
        if len(given) != batch:
            raise WrongRequest(f"lengths = {lengths} has {len(given)} lengths, and batch = {batch} needs {batch}")
        return _listed(given)
    return str(lengths)


def _listed(found: Sequence[int]) -> str:
    return LIST + "+".join(map(str, found))


def _check(lengths: str, found: Sequence[int], longest: int) -> None:
    if wrong := [each for each in found if not 1 <= each <= longest]:
        raise WrongRequest(f"lengths = {lengths} has {wrong[0]}; a length must be from 1 to num_tokens = {longest}")


def _read(path: str) -> list[int]:
    name = f"lengths = {FILE}{path}"
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise WrongRequest(f"{name} can't be read: {reason}") from None
    numbered = [(number, line.strip()) for number, line in enumerate(lines, 1) if line.strip()]
    for number, line in numbered:
        if not line.isdecimal():
            raise WrongRequest(f"{name} must have a whole number in each line, got {line!r} in line {number}")
    if not numbered:
        raise WrongRequest(f"{name} must have a whole number in each line, got an empty file")
    return [int(line) for _, line in numbered]


def padding(lengths: str, batch: int, longest: int) -> float:
    """Return the share of padding in a batch whose items are padded to `longest` tokens."""
    return 1 - math.fsum(of_items(lengths, batch, longest)) / (batch * longest)
