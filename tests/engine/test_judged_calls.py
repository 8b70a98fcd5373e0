"""The draw of the timed calls that are judged."""

import math
import random
from collections import Counter

import numpy as np
import pytest

from bench.engine.judged_calls import JudgedCalls


def slips(batch: int, timings: int, share: float, rng: random.Random, samples: int = 60) -> float:
    """Return how likely a process slips through that leaves out half of the batch in this share of its timings.

    It follows exactly from the parts that are drawn. In a batch of a single item a part is always found to be wrong.
    """
    judged = JudgedCalls(rng, batch=batch, timings=timings, rounds=5)
    for _ in range(samples):
        judged.next_keys()
        judged.draw([0] * timings)
    items = Counter(key for key, _ in {(part.key, part.item) for part in judged.parts.kept})
    half = (batch + 1) // 2
    unseen = [math.comb(batch - count, half) / math.comb(batch, half) for count in items.values()]
    return math.prod(1 - share + share * each for each in unseen)


@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize(("timings", "share"), [(1, 1 / 3), (3, 0.2063)])
def test_half_of_the_work_in_a_third_of_the_calls_is_found_in_199_of_200_processes(
    batch: int, timings: int, share: float
) -> None:
    """If the least of three timings counts, fewer calls are enough to be shown as fast: in half of the samples.

    The mean of 50 exact chances is known to less than a tenth of 1 in 200; 2,000 yes or no answers give a third.
    """
    rng = random.Random(1)
    assert np.mean([slips(batch, timings, share, rng) for _ in range(50)]) <= 1.1 / 200


def test_more_parts_are_judged_where_less_is_wrong() -> None:
    """The numbers follow from 1 in 200, 5/6 to the power of 29.1 and 2/3 to the power of 13.1, and a tenth more."""
    sizes = {
        (batch, timings): JudgedCalls(random.Random(1), batch=batch, timings=timings, rounds=5).parts.size
        for batch, timings in ((8, 1), (1, 1), (8, 3))
    }
    assert (sizes[8, 1], sizes[1, 1]) == (32, 15)
    assert sizes[8, 3] > sizes[8, 1]


@pytest.mark.parametrize(
    ("item_s", "item_bytes", "more"),
    [(1e-5, 1, 216), (1e-3, 1, 100), (2e-3, 1, 54), (1e-5, 3 << 20, 54), (1e-5, 1 << 28, 4)],
)
def test_more_items_are_judged_where_they_cost_little(item_s: float, item_bytes: int, more: int) -> None:
    """They may take a tenth of a second of calls. One wrong call of fifty slips through once in fifteen processes.

    Items of 3 MiB are no more than must be, and of 256 MiB there are four in a GiB.
    """
    rng = random.Random(1)
    judged = JudgedCalls(rng, batch=8, timings=3, rounds=5, item_s=item_s, item_bytes=item_bytes)
    assert judged.parts.size == more
    for _ in range(80):
        judged.next_keys()
        judged.draw([0, 0, 0])
    looked_at = len({part.key for part in judged.parts.kept})
    assert (0.98**looked_at < 1 / 15) is (more == 216)


@pytest.mark.parametrize("mode", ["inference", "forward", "train"])
def test_all_calls_have_the_same_chance(mode: str) -> None:
    """Of 40 samples, the first as often as the last, for items and in modes with gradients for whole outputs too."""
    parts: Counter[int] = Counter()
    wholes: Counter[int] = Counter()
    for seed in range(600):
        judged, numbers = JudgedCalls(random.Random(seed), batch=8, timings=1, rounds=5, mode=mode), {}
        for number in range(40):
            (key,) = judged.next_keys()
            numbers[key] = number
            judged.draw([2])
        parts.update(numbers[part.key] for part in judged.parts.kept)
        wholes.update(numbers[call.key] for call in judged.wholes.kept)
        assert {part.number for part in judged.parts.kept} == {2}
        assert {call.number for call in judged.wholes.kept} <= {2}
    assert len(parts) == 40
    assert max(parts.values()) < 1.4 * min(parts.values())
    assert sum(wholes.values()) == (0 if mode == "inference" else 1200)
    assert max(wholes.values(), default=0) < 2.5 * min(wholes.values(), default=1)


@pytest.mark.parametrize("mode", ["inference", "train"])
def test_what_is_kept_is_what_was_asked_for(mode: str) -> None:
    """Each place has the timing and the item of the part or the call that is kept there in the end."""
    judged = JudgedCalls(random.Random(3), batch=4, timings=2, rounds=1, mode=mode)
    places: dict[tuple[str, int], tuple[int, ...]] = {}
    for _ in range(30):
        keys = judged.next_keys()
        for kind, asked in judged.draw([5, 6]).items():
            places |= {(kind, place): (keys[timing], [5, 6][timing], *item) for place, timing, *item in asked}
    kept = {("parts", place): tuple(each) for place, each in enumerate(judged.parts.kept)}
    assert places == kept | {("wholes", place): tuple(each) for place, each in enumerate(judged.wholes.kept)}


def test_the_gradients_of_mode_forward_are_those_of_the_last_timing() -> None:
    """The next timing would change its input."""
    for seed in range(20):
        judged = JudgedCalls(random.Random(seed), batch=2, timings=3, rounds=1, mode="forward")
        last = [judged.next_keys()[2]]
        assert judged.draw([0, 1, 2])["wholes"] == [[0, 2]]
        assert [call.key for call in judged.wholes.kept] == last
    for _ in range(200):
        judged.next_keys()
        assert "parts" in judged.draw([0, 1, 2])  # else the graph would stay until the next sample
