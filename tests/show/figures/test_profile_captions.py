"""What is written around pictures of profiles."""

import dataclasses

from bench.show.figures.profile_captions import facts, origins
from tests.profiles import profile, stepwise


def test_facts_are_what_is_fixed() -> None:
    """The device with its name, and no column that the picture shows."""
    assert facts([stepwise(), profile()]) == [
        *("vit", "cpu (A CPU)", "float32", "inference", "B=8", "N=197", "C=384", "H=6", "1 thread"),
    ]
    assert "N=197" not in facts([stepwise()], ["num_tokens"])


def test_origins_say_how_many_calls_and_with_what() -> None:
    """A range where profiles differ, and each version once."""
    other = dataclasses.replace(profile(), calls=7)
    assert origins([stepwise(), other]) == [
        *("means over 3 to 7 calls under the profiler", "torch 2.13.0", "commit 0123456789ab+"),
    ]
