"""The inputs whose outputs are compared with the reference: those of checks, by name, and those of timed calls, by key.

The inputs of a timing follow from a key, which the engine draws. A worker gets it with the request to sample, so that
no input is known before. Key and number say which inputs a call had, so the judge can replay it.
"""

import random
from typing import NamedTuple

KEY_BITS = 53
"""Bits of a key: JSON keeps such whole numbers."""

NORMAL, PEAKED = "normal input", "peaked input"
"""Before the rounds; in a peaked softmax the largest logits are so large that their exponentials overflow."""

TIMED, AFTERWARDS = "in a timed call", "on fresh values after the rounds"
"""In a call of the rounds, and after them."""

GIVEN = "given"
"""The file with the weights of another side of a duel."""

SHIFTS = 4096
"""The number of windows that can be cut out of random numbers, each shifted by one more number."""


class InputValues(NamedTuple):
    """The values of the input of a check: how far their window is shifted, and the factor that multiplies them."""

    shift: int = 0
    factor: float = 1.0


LONG_SCORES = 1 << 24
"""The most attention scores of an item that the reference holds at once. A sequence with more is long."""

ROWS, PART_ROWS = 512, 64
"""The rows of each item of a long sequence that are compared: if 1 of 100 is wrong, 99.4 % of draws find it.
Of each item of a timed call it is PART_ROWS: they find the half that was left out, and 1 of 20 in 96 % of draws."""


def shifts(key: int, calls: int) -> list[int]:
    """Return where the window of the inputs of each call of a timing begins.

    Up to SHIFTS calls have windows that differ. The first ones are the same for any number of calls.
    """
    rng = random.Random(key)  # noqa: S311 - a choice that the judge repeats
    first, step = rng.randrange(SHIFTS), 1 + 2 * rng.randrange(SHIFTS // 2)
    return [(first + call * step) % SHIFTS for call in range(calls)]


class TimedCall(NamedTuple):
    """A timed call: the key of its timing, the number of its input in the timing, and an item of it, None for all."""

    key: int
    number: int
    item: int | None = None
