"""The inputs whose outputs are compared with the reference: those of checks, by name, and those of timed calls, by key.

The inputs of a timing follow from a key, and the calls that are judged are drawn after they were made.

The engine draws the keys. A worker gets them with the request to sample, so that no input is known before; the judge
gets them later, and makes the same inputs.
"""

import math
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

TURNS = 3
"""The number of inputs of an implementation, which alternate from call to call."""

KEY_BITS = 53
"""Bits of a key: JSON keeps such whole numbers."""

SLIPS = 1 / 200
"""How often an implementation may slip through that saves half of its work, in so many calls that it is shown half as
long: in a third of the calls, or if the least of several timings counts, in so many that half of the samples hold one.
"""

CALLS = 1 / 3
"""The calls in which such an implementation saves work if each sample is one timing."""


NORMAL, PEAKED = "normal input", "peaked input"
"""Before the rounds; a peaked softmax is the harder one."""

TIMED, AFTERWARDS = "in a timed call", "on fresh values after the rounds"
"""In a call of the rounds, and after them."""

SHIFTS = 4096
"""The number of other inputs that can be cut out of the random values, each shifted by one more value."""

Values = int | tuple[int, ...]
"""Where the values of a check come from: how far they are shifted, or for a timed input the key of its numbers, the key
of its timing, and its place among the inputs of the timing."""

LONG_SCORES = 1 << 24
"""The most attention scores of an item that the reference holds at once. A sequence with more is long."""

ROWS, PART_ROWS = 512, 64
"""The rows of each item of a long sequence that are compared: if 1 of 100 is wrong, 99.4 % of draws find it.
Of each item of a timed call it is PART_ROWS: they find the half that was left out, and 1 of 20 in 96 % of draws."""


class TimedInputs(NamedTuple):
    """The order of a worker's input tensors in a timing, and for each the two windows and the sign of its values."""

    order: tuple[int, ...]
    values: tuple[tuple[int, int, int], ...]


def drawn(key: int, tensors: int = TURNS) -> TimedInputs:
    """Return what a key says of this many input tensors; the first values are the same for any number."""
    rng = random.Random(key)  # noqa: S311 - a choice that the judge repeats
    windows = [(*rng.sample(range(SHIFTS), 2), rng.choice((-1, 1))) for _ in range(tensors)]
    values = tuple((first, second, sign) for first, second, sign in windows)
    return TimedInputs(tuple(rng.sample(range(tensors), tensors)), values)


def parts(batch: int, timings: int) -> int:
    """Return how many items of drawn calls are judged, so that few slip through that save half of the batch.

    Half of the work in a share s of the calls is found in a drawn item with probability s/2, or s if the batch is one
    item: then every part of it is compared.
    """
    share = CALLS if timings == 1 else 1 - 0.5 ** (1 / timings)
    return math.ceil(math.log(SLIPS) / math.log(1 - share * (0.5 if batch > 1 else 1.0)))


class Part(NamedTuple):
    """One item of the output of one call: the key of its timing, which of the timing's inputs it had, the item."""

    key: int
    number: int
    item: int


class JudgedCalls:
    """Which parts of the timed calls of a process are judged, drawn after each sample, all with the same chance.

    `whole_key` is that of a timing, in one of the first `rounds` samples, of which the whole output of a call is
    judged; `whole` is the place of its input in the timing. In mode forward it is the last timing of the sample: the
    next one would change the input, which the gradients need. At most so many parts are judged as `most` says.
    """

    def __init__(
        self, rng: random.Random, whole_key: int, *, batch: int, timings: int, rounds: int, mode: str = "inference"
    ) -> None:
        self.most = parts(batch, timings)
        self.parts: list[Part] = []
        self.whole: int | None = None
        self._rng = rng
        self._whole_key = whole_key
        self._mode = mode
        self._batch = batch
        self._timings = timings
        self._each = min(batch, math.ceil(self.most / (rounds * timings)))
        self._calls = self._samples = 0
        self._whole_at = rng.randrange(rounds), timings - 1 if mode == "forward" else rng.randrange(timings)

    def next_keys(self) -> list[int]:
        """Return the keys of the next sample, one for each timing."""
        self._keys = [self._rng.getrandbits(KEY_BITS) for _ in range(self._timings)]
        number, timing = self._whole_at
        if self._samples == number:
            self._keys[timing] = self._whole_key
        self._samples += 1
        return self._keys

    def draw(self, numbers: Sequence[int]) -> dict[str, Any]:
        """Return the request to keep parts of the last sample; `numbers` says which input each held call had.

        A sample with nothing to keep has an empty one. In mode forward there is always one, which lets go of the graph.
        """
        kept: dict[int, tuple[int, int]] = {}
        for timing, (key, number) in enumerate(zip(self._keys, numbers, strict=True)):
            self._calls += 1
            for item in self._rng.sample(range(self._batch), self._each if self._calls <= self.most else 1):
                place = self._place(key)
                if place is not None:
                    self.parts[place : place + 1] = [Part(key, number, item)]
                    kept[place] = timing, item
        request: dict[str, Any] = {"parts": [[place, *taken] for place, taken in kept.items()]}
        request = request if kept or self._mode == "forward" else {}
        number, timing = self._whole_at
        if self._samples == number + 1:
            self.whole = numbers[timing]
            request = {"parts": [], **request, "whole": timing}
        return request

    def _place(self, key: int) -> int | None:
        """Return the place of another item of a call, or None: more calls are worth more than more items of one."""
        if len(self.parts) < self.most:
            return len(self.parts)
        counts = Counter(part.key for part in self.parts)
        if key in counts:
            return None
        if self._calls > self.most and self._rng.random() * self._calls >= self.most:
            return None
        fullest = max(counts.values())
        return self._rng.choice([place for place, part in enumerate(self.parts) if counts[part.key] == fullest])
