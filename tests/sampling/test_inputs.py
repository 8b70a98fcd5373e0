"""Timed inputs by their keys, and the draw of what is judged."""

import math
import random
from collections import Counter

import numpy as np
import pytest

from bench.sampling.inputs import SHIFTS, TURNS, JudgedCalls, drawn, parts


def test_a_key_says_the_same_of_fewer_tensors() -> None:
    """The judge doesn't know how many inputs a timing had."""
    for key in range(20):
        whole = drawn(key)
        for tensors in range(1, TURNS + 1):
            some = drawn(key, tensors)
            assert some.values == whole.values[:tensors]
            assert sorted(some.order) == [*range(tensors)]
        assert all(first != second and {first, second} <= set(range(SHIFTS)) for first, second, _ in whole.values)


def slips(batch: int, timings: int, share: float, rng: random.Random, samples: int = 60) -> float:
    """Return how likely a process slips through that leaves out half of the batch in this share of its timings.

    It follows exactly from the parts that are drawn. In a batch of a single item a part is always found to be wrong.
    """
    judged = JudgedCalls(rng, 1, batch=batch, timings=timings, rounds=5)
    for _ in range(samples):
        judged.next_keys()
        judged.draw([0] * timings)
    items = Counter(key for key, _ in {(part.key, part.item) for part in judged.parts})
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
    """The numbers follow from 1 in 200: 5/6 to the power of 30, 2/3 to the power of 14."""
    assert (parts(8, 1), parts(1, 1)) == (30, 14)
    assert parts(8, 3) > parts(8, 1)


def test_all_calls_have_the_same_chance() -> None:
    """Of 40 samples, the first as often as the last; the whole output comes from one of the first rounds."""
    counts: Counter[int] = Counter()
    whole: Counter[int] = Counter()
    for seed in range(400):
        judged, numbers = JudgedCalls(random.Random(seed), 1, batch=8, timings=1, rounds=5), {}
        for number in range(40):
            (key,) = judged.next_keys()
            numbers[key] = number
            if "whole" in judged.draw([2]):
                whole[number] += 1
        counts.update(numbers[part.key] for part in judged.parts)
        assert judged.whole == 2
    assert len(counts) == 40
    assert max(counts.values()) < 1.4 * min(counts.values())
    assert sorted(whole) == [*range(5)]


def test_the_gradients_of_mode_forward_are_those_of_the_last_timing() -> None:
    """The next timing would change its input."""
    for seed in range(20):
        judged = JudgedCalls(random.Random(seed), 1, batch=2, timings=3, rounds=1, mode="forward")
        assert judged.next_keys()[2] == 1
        assert judged.draw([0, 1, 2])["whole"] == 2
    for _ in range(200):
        judged.next_keys()
        assert "parts" in judged.draw([0, 1, 2])  # else the graph would stay until the next sample
