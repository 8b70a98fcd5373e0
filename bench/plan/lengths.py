"""The lengths of the items of a batch: a list, or the quantiles of a named distribution, so that nothing is random.

The longest item of a distribution has all tokens of the point. A list may have a shorter one, which is padded.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from bench.plan.errors import WrongRequest
from impls.catalogue import FIXED

LIST = "list:"
"""The prefix of a `lengths` value that is a list."""

SHORT, SHORT_ITEMS = 1 / 8, 3 / 4
"""`bimodal`: the length of a short item as a share of the longest one, and the share of short items."""

RULE = "fixed, uniform, zipf, bimodal, or list:A+B+… with a length for each item"

FORM = re.compile(r"fixed|uniform|zipf|bimodal|list:\d+(\+\d+)*")

SHARES: Mapping[str, Callable[[float, int], float]] = {
    "uniform": lambda at, _longest: at,
    "zipf": lambda at, longest: longest ** (at - 1),
    "bimodal": lambda at, _longest: SHORT if at < SHORT_ITEMS else 1.0,
}
"""The quantile function of each distribution, from 0 to 1, as a share of the longest item.

In `zipf` the probability of the length n is proportional to 1/n (exponent 1), so its logarithm is uniform.
"""


def of_items(lengths: str, batch: int, longest: int) -> tuple[int, ...]:
    """Return the number of tokens of each item of a batch, the longest first."""
    if lengths == FIXED:
        return (longest,) * batch
    if lengths.startswith(LIST):
        return tuple(sorted(map(int, lengths.removeprefix(LIST).split("+")), reverse=True))
    shares = [SHARES[lengths]((item + 0.5) / batch, longest) for item in range(batch)]
    return (longest, *(max(1, round(longest * share)) for share in reversed(shares[:-1])))


def ordered(values: Mapping[str, Any]) -> str:
    """Return a point's `lengths`; a list is sorted, the longest item first.

    Raises WrongRequest for a list that doesn't fit the batch.
    """
    lengths, batch, longest = values["lengths"], values["batch"], values["num_tokens"]
    if not lengths.startswith(LIST):
        return str(lengths)
    given = of_items(lengths, batch, longest)
    if wrong := [each for each in given if not 1 <= each <= longest]:
        raise WrongRequest(f"lengths = {lengths} has {wrong[0]}; a length must be from 1 to num_tokens = {longest}")
    if len(given) != batch:
        raise WrongRequest(f"lengths = {lengths} has {len(given)} lengths, and batch = {batch} needs {batch}")
    return LIST + "+".join(map(str, given))


def padding(lengths: str, batch: int, longest: int) -> float:
    """Return the share of padding in a batch whose items are padded to `longest` tokens."""
    return 1 - math.fsum(of_items(lengths, batch, longest)) / (batch * longest)
