"""Which timed calls of a process are judged: they are drawn after they were made, and all have the same chance."""

import math
import random
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from bench.sampling.inputs import KEY_BITS, Part, TimedCall

SLIPS = 1 / 200
"""The accepted chance to miss an implementation that skips half of its work in CALLS of its calls; with the least of
several timings, in so many calls that half of the samples hold one."""

CALLS = 1 / 3
"""The calls in which such an implementation saves work if each sample is one timing."""

TWICE = 1.1
"""How many items are judged for each call that is needed: two of them may be of the same call."""

MORE, MORE_S, MORE_BYTES = 216, 0.1, 1 << 26
"""Up to so many items are judged if they cost a call so many seconds, and the expected ones have so many bytes: rare
mistakes are found by many looks."""

FEWEST, MOST_BYTES = 4, 1 << 30
"""No more items are judged than have so many bytes, but FEWEST: a process holds all of them until its last calls, and
items of 64 heads at 8,192 tokens have 268 MB."""

WHOLES = 2
"""The timed calls of a process whose outputs are judged whole, in modes with gradients: the gradient of a weight is a
sum over all items, so that it can't be judged by items."""

Offered = TypeVar("Offered")


def parts(batch: int, timings: int) -> int:
    """Return how many items of drawn calls are judged, so that few slip through that save half of the batch.

    Half of the work in a share s of the calls is found in a drawn item with probability s/2, or s if the batch is one
    item: then every part of it is compared.
    """
    share = CALLS if timings == 1 else 1 - 0.5 ** (1 / timings)
    return math.ceil(TWICE * math.log(SLIPS) / math.log(1 - share * (0.5 if batch > 1 else 1.0)))


class Reservoir(Generic[Offered]):
    """A sample of all that was offered so far, at most `size`, in which each has the same chance.

    Source: Vitter, Random sampling with a reservoir, ACM TOMS 1985, algorithm R.
    """

    def __init__(self, size: int, rng: random.Random) -> None:
        self.size = size
        self.kept: list[Offered] = []
        self._rng = rng
        self._offered = 0

    def offer(self, each: Offered) -> int | None:
        """Return the place at which it is kept, None if it isn't."""
        self._offered += 1
        place = len(self.kept) if len(self.kept) < self.size else self._rng.randrange(self._offered)
        if place >= self.size:
            return None
        self.kept[place : place + 1] = [each]
        return place


class JudgedCalls:
    """Which of the timed calls of a process are judged, drawn after each sample, all with the same chance.

    Items of their outputs are judged, `parts`, and in modes with gradients `wholes`: all of their outputs. In mode
    forward those come from the last timing of a sample: the next one would change the input, which the gradients need.
    Each timing offers as many items as find most in the fewest samples that a process takes, `rounds`. More of them
    are kept of longer ones if an item costs a call few seconds, `item_s`, and has few bytes, `item_bytes`.
    """

    def __init__(
        self,
        rng: random.Random,
        *,
        batch: int,
        timings: int,
        rounds: int,
        mode: str = "inference",
        item_s: float = math.inf,
        item_bytes: int = 1,
    ) -> None:
        least = min(parts(batch, timings), max(FEWEST, MOST_BYTES // item_bytes))
        self.parts = Reservoir[Part](max(least, min(MORE, int(MORE_S / item_s), MORE_BYTES // item_bytes)), rng)
        self.wholes = Reservoir[TimedCall](WHOLES if mode != "inference" else 0, rng)
        self._rng = rng
        self._mode = mode
        self._batch = batch
        self._timings = timings
        self._items = min(batch, math.ceil(least / (rounds * timings)))

    def next_keys(self) -> list[int]:
        """Return the keys of the next sample, one for each timing."""
        self._keys = [self._rng.getrandbits(KEY_BITS) for _ in range(self._timings)]
        return self._keys

    def draw(self, numbers: Sequence[int]) -> dict[str, Any]:
        """Return the request to keep outputs of the last sample; `numbers` says which input each held call had.

        A sample with nothing to keep has an empty one. In mode forward there is always one, which lets go of the graph.
        """
        items: dict[int, tuple[int, int]] = {}
        wholes: dict[int, int] = {}
        for timing, (key, number) in enumerate(zip(self._keys, numbers, strict=True)):
            for item in self._rng.sample(range(self._batch), self._items):
                if (place := self.parts.offer(Part(key, number, item))) is not None:
                    items[place] = timing, item
            is_last = timing == self._timings - 1
            if (is_last or self._mode != "forward") and (
                place := self.wholes.offer(TimedCall(key, number))
            ) is not None:
                wholes[place] = timing
        if not (items or wholes or self._mode == "forward"):
            return {}
        return {
            "parts": [[place, *taken] for place, taken in items.items()],
            "wholes": [[*each] for each in wholes.items()],
        }
