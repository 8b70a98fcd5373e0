"""Packing against padding, at each share of padding."""

import math
from collections.abc import Mapping
from typing import Any

import pytest

from bench.analyse.padding import Packing, packing, series
from bench.analyse.rows import plain
from bench.analyse.summary import summarise
from bench.plan.case import CONTROL, Case, Point
from bench.plan.verdicts import FASTER, OPEN, SLOWER
from bench.store.table import without_control
from tests.make.points import vit_s
from tests.make.records import measured

HALF = "list:197+99+99+99+99+99+99+1"
"""Of 8 items, with half of 8 · 197 tokens and 4 more."""


def found(
    seconds: Mapping[str, float], processes: int = 5, peaks: Mapping[str, int] | None = None, **columns: Any
) -> Packing | None:
    """Return what is found at a point at which implementations take some seconds, and some memory."""
    at = vit_s(**{"lengths": HALF, **columns})
    records = [
        measured(Case(at, name), process, value_s, peak_bytes=(peaks or {}).get(name, 1024))
        for process in range(processes)
        for name, value_s in seconds.items()
    ]
    return packing(at, plain(without_control(summarise(records, "eager"))))


def at(point: Point, padding: float = 0.5) -> Packing:
    """Return what may be found at a point."""
    return Packing(point, padding, "loop", "sdpa", OPEN, 1.0, None)


def test_the_best_that_packs_is_compared_with_the_best_that_pads() -> None:
    """Each is the first of its kind by rank; the shares are those of its time and of its memory."""
    seconds = {"eager": 3.0, "sdpa": 1.0, "nested": 0.9, "loop": 0.5, CONTROL: 3.0}
    of = found(seconds, peaks={"sdpa": 4000, "loop": 1000})
    assert of
    assert (of.packed, of.padded, of.verdict) == ("loop", "sdpa", FASTER)
    assert of.time_share == pytest.approx(0.5, rel=0.005)
    assert of.memory_share == 0.25
    assert of.padding == 1 - (197 + 6 * 99 + 1) / (8 * 197)


@pytest.mark.parametrize(
    ("loop_s", "processes", "verdict"), [(0.5, 5, FASTER), (2.0, 5, SLOWER), (1.0, 5, OPEN), (0.5, 1, OPEN)]
)
def test_the_verdict_is_that_of_the_interval(loop_s: float, processes: int, verdict: str) -> None:
    """Without one, as in a single process, nothing is shown."""
    of = found({"eager": 3.0, "sdpa": 1.0, "loop": loop_s}, processes)
    assert of
    assert of.verdict == verdict


@pytest.mark.parametrize(
    ("seconds", "columns"),
    [
        ({"eager": 1.0, "sdpa": 1.0}, {}),
        ({"loop": 1.0, "nested": 1.0}, {}),
        ({"eager": 1.0, "loop": 1.0}, {"lengths": "fixed"}),
        ({"mine:attend": 1.0, "loop": 1.0}, {}),
        ({"stepwise": 1.0, "loop": 1.0}, {}),
        ({}, {}),
    ],
)
def test_nothing_is_found_without_both(seconds: Mapping[str, float], columns: dict[str, Any]) -> None:
    """A user's own is neither, nor is one for profiles alone, and items of one length have nothing to pack."""
    assert found(seconds, **columns) is None


def test_without_a_peak_there_is_no_share_of_memory() -> None:
    """A call that holds nothing has none either."""
    of = found({"eager": 3.0, "sdpa": 1.0, "loop": 0.5}, peaks={"sdpa": 0})
    assert of
    assert of.memory_share is None
    assert math.isfinite(of.time_share)


def test_a_series_has_points_that_differ_in_lengths_alone() -> None:
    """The least share of padding comes first."""
    short, long = (
        [at(vit_s(num_tokens=tokens, lengths=name), share) for name, share in (("zipf", 0.8), ("uniform", 0.5))]
        for tokens in (128, 256)
    )
    assert series([*short, *long]) == [short[::-1], long[::-1]]
