"""Timed inputs by their keys."""

from bench.sampling.inputs import SHIFTS, windows


def test_a_key_says_the_same_of_fewer_calls() -> None:
    """The judge doesn't know how many calls a timing had."""
    for key in range(20):
        whole = windows(key, 9)
        assert len(set(whole)) == 9
        assert {shift for each in whole for shift in each} <= set(range(SHIFTS))
        assert all(windows(key, calls) == whole[:calls] for calls in range(9))
