"""The inputs whose outputs are compared with the reference: named inputs in checks, and keyed inputs in timed calls.

The inputs of a timing follow from a key that the engine draws. A worker gets the key with the request to sample, so no
input is known earlier. Key and number identify the inputs of a call, so the judge can replay it.
"""

import random
from typing import NamedTuple

KEY_BITS = 53
"""The bits of a key; JSON keeps such integers exact."""

NORMAL, PEAKED = "normal input", "peaked input"
"""The checks before the rounds. The peaked input has logits so large that their exponentials overflow."""

TIMED, AFTERWARDS = "in a timed call", "on fresh values after the rounds"
"""The checks of calls in the rounds, and of a call after them."""

GIVEN = "given"
"""The file with the weights of another side of a duel."""

SHIFTS = 4096
"""The number of windows into the random numbers, each shifted by one more number."""


class InputValues(NamedTuple):
    """The values of a check's input: the shift of their window, and the factor that multiplies them."""

    shift: int = 0
    factor: float = 1.0


LONG_SCORES = 1 << 24
"""The most attention scores of an item that the reference holds at once. A sequence with more scores is long."""

ROWS, PART_ROWS = 512, 64
"""The compared rows of each item of a long sequence, in checks and in timed calls. If 1 row in 100 is wrong, 99.4 % of
draws of ROWS find it. PART_ROWS find an output of which half was left out, and 1 wrong row in 20 in 96 % of draws."""


def shifts(key: int, calls: int) -> list[int]:
    """Return the start of the input window of each call in a timing.

    Up to SHIFTS calls have different windows. The first ones don't depend on the number of calls.
    """
    rng = random.Random(key)  # noqa: S311 - a choice that the judge repeats
    first, step = rng.randrange(SHIFTS), 1 + 2 * rng.randrange(SHIFTS // 2)
    return [(first + call * step) % SHIFTS for call in range(calls)]


class TimedCall(NamedTuple):
    """A timed call: the key of its timing, the number of its input in the timing, and an item, None for all."""

    key: int
    number: int
    item: int | None = None
