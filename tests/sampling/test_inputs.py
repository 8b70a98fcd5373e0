"""Timed inputs by their keys."""

from bench.sampling.inputs import SHIFTS, shifts


def test_a_key_says_the_same_of_fewer_calls() -> None:
    """The judge doesn't know how many calls a timing had; no two of them have the same inputs."""
    for key in range(20):
        whole = shifts(key, SHIFTS)
        assert {*whole} == {*range(SHIFTS)}
        assert all(shifts(key, calls) == whole[:calls] for calls in range(9))
