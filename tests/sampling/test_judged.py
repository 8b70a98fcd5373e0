"""The number of timed calls' outputs that are kept for the judge, and the calls that a process must name."""

import math
import random
from collections import Counter

import numpy as np
import pytest

from bench.sampling.inputs import TimedCall
from bench.sampling.judged import Kept, kept_of, objection
from tests.make.points import point

SAMPLES = 60
"""The samples of a process."""


def slips(batch: int, timings: int, share: float, rng: random.Random) -> float:
    """Return how likely a process slips through that leaves out half of the batch in this share of its timings.

    It follows exactly from the items that are drawn. In a batch of a single item that one is always found to be wrong.
    """
    number = kept_of(point(batch=batch), timings, 1.0)
    offered = [(key, item) for key in range(SAMPLES * timings) for item in rng.sample(range(batch), number.of_timing)]
    items = Counter(key for key, _ in rng.sample(offered, number.items))
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


@pytest.mark.parametrize(
    ("item_s", "channels", "items"), [(1e-5, 12, 216), (1e-3, 12, 100), (2e-3, 12, 54), (1e-5, 1 << 24, 4)]
)
def test_more_items_are_judged_where_they_cost_little(item_s: float, channels: int, items: int) -> None:
    """They may take a tenth of a second of calls, and a quarter of a GiB, but for four of them."""
    assert kept_of(point(batch=8, channels=channels), 3, 8 * item_s).items == items


def test_whole_outputs_are_kept_for_the_gradients_of_weights() -> None:
    """Without gradients items say all; one is enough where they are large."""
    large = point(mode="train", channels=1 << 24)
    assert [kept_of(at, 3, 1.0).wholes for at in (point(), point(mode="train"), large)] == [0, 2, 1]


WHOLE = [TimedCall(1, 0)]
ITEMS = [TimedCall(key, 3, item) for key in (1, 2) for item in (0, 1)]


@pytest.mark.parametrize(
    ("calls", "says"),
    [
        (WHOLE + ITEMS, ""),
        (ITEMS, "4 items and 0 whole outputs, expected 4 and 1"),
        (WHOLE + ITEMS[:3], "3 items and 1 whole outputs, expected 4 and 1"),
        (WHOLE + ITEMS[:3] * 2, "3 items and 1 whole outputs, expected 4 and 1"),
        ([*WHOLE, *ITEMS, TimedCall(3, 0, 0)], "calls that it was not asked for"),
    ],
)
def test_a_process_names_calls_of_its_own_and_enough_of_them(calls: list[TimedCall], says: str) -> None:
    """Two timings that offer two items each keep all of them; an item that is named twice counts once."""
    found = objection(Kept(items=5, of_timing=2, wholes=1), [1, 2], calls)
    assert found.endswith(says)
    assert bool(found) is bool(says)
