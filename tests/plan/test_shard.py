"""Shards: the parts of a sweep for several machines."""

import dataclasses
import itertools

import pytest

from bench.plan.shard import Shard, parse, part
from tests.points import point
from tests.refusals import refusal

POINTS = tuple(
    point(num_tokens=tokens, dtype=dtype) for tokens in range(1, 14) for dtype in ("float32", "bfloat16", "float16")
)


@pytest.mark.parametrize("count", [1, 2, 4, 13])
def test_shards_are_the_sweep_without_overlap(count: int) -> None:
    """Every point is in one shard, in the order of the sweep, and no shard has two groups more than another."""
    parts = [part(POINTS, Shard(number, count)) for number in range(1, count + 1)]
    assert sorted(itertools.chain(*parts), key=POINTS.index) == [*POINTS]
    assert all([*each] == sorted(each, key=POINTS.index) for each in parts)
    assert max(map(len, parts)) - min(map(len, parts)) <= 3


def test_points_that_differ_in_the_dtype_alone_stay_together() -> None:
    """They are measured in the same rounds."""
    tokens = [{each.num_tokens for each in part(POINTS, Shard(number, 4))} for number in range(1, 5)]
    assert sum(map(len, tokens)) == len(set.union(*tokens)) == 13


def test_a_shard_is_the_same_on_every_machine() -> None:
    """What follows from the machine, and the order of the sweep, don't matter; this is a part that was dealt before."""
    here = {each.num_tokens for each in part(POINTS, Shard(2, 4))}
    elsewhere = [dataclasses.replace(each, threads=7, allocator="retained-huge") for each in reversed(POINTS)]
    assert {each.num_tokens for each in part(elsewhere, Shard(2, 4))} == here


@pytest.mark.parametrize("text", ["5/4", "0/4", "1", "a/b", "1/0", "-1/4", "1/4/2", ""])
def test_what_is_no_shard_is_refused(text: str) -> None:
    """The line has the rule and what came."""
    line = refusal(parse, text)
    assert f"--shard {text} must be I/N" in line
    assert "1/4" in line


def test_more_shards_than_points_are_refused() -> None:
    """A shard without points would end without a result; the line says how many there can be."""
    assert parse("2/3") == Shard(2, 3)
    assert "at most 13 shards, got 14" in refusal(part, POINTS, Shard(14, 14))
