"""Samples as one short text."""

import dataclasses
import random

import pytest
from hypothesis import given, settings

from bench.store.packed import is_packed, pack, rounded, unpack
from bench.store.record import Samples
from tests.examples import record, sample_columns


@settings(deadline=None, max_examples=100)
@given(sample_columns())
def test_round_trip(samples: Samples) -> None:
    """Whatever samples are packed, the same numbers come back, as many in each sample as there were."""
    packed = pack(vars(samples))
    assert is_packed(packed)
    assert unpack(packed) == dataclasses.asdict(samples)
    assert Samples.from_json(packed) == samples


def test_what_was_not_measured_stays_empty() -> None:
    """A case that failed has no samples, and older ones have no probe."""
    assert Samples.from_json(pack(vars(Samples()))) == Samples()
    assert unpack(pack(vars(record().samples)))["product_s"] == ()


def test_usual_samples_take_few_bytes() -> None:
    """60 samples of three timings with their surroundings take fewer than 32 bytes each."""
    rng = random.Random(0)
    values = [tuple(rng.lognormvariate(-5, 0.1) for _ in range(60)) for _ in range(6)]
    samples = Samples(
        tuple(range(60)), tuple(zip(*values[:3], strict=True)), (0,) * 60, (0,) * 60, values[3], values[4], values[5]
    )
    assert len(pack(vars(samples.rounded()))["zlib"]) < 32 * 60


@pytest.mark.parametrize(("bits", "most"), [(24, 2**-24), (16, 2**-16)])
def test_rounding_is_near(bits: int, most: float) -> None:
    """A rounded number differs by at most half of its last digit, and stays itself when it is rounded again."""
    values = [random.Random(seed).lognormvariate(0, 9) for seed in range(99)]
    once = rounded(values, bits=bits)
    assert all(abs(one - value) <= most * value for one, value in zip(once, values, strict=True))
    assert rounded(once, bits=bits) == once


@pytest.mark.parametrize("damage", [{"zlib": "AAAA"}, {"zlib": "?"}, {"count": 4}, {"bytes": "4444440"}])
def test_damage_is_told(damage: dict[str, object]) -> None:
    """A text that isn't whole is a ValueError."""
    packed = {**pack(vars(record().samples)), **damage}
    with pytest.raises(ValueError, match=r".+"):
        unpack(packed)
