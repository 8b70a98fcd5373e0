"""From the values of a grid to points."""

from typing import Any

import pytest

from bench.plan.case import COLUMNS, HUGE, RETAINED
from bench.plan.columns import DERIVED, Kind
from bench.plan.grid import DEFAULTS, expand
from bench.plan.layers import LAYERS
from tests.examples import POINT, point
from tests.refusals import refusal

SMALL: dict[str, Any] = {**DEFAULTS, "threads": 1, "num_tokens": 10, "channels": 12}
"""The least that a grid must say, on a machine with one thread."""

SAID = {name: value for name, value in POINT.items() if value is not None}
"""All that can be said of a point of the vit layer."""


def refused(values: dict[str, Any]) -> str:
    """Return why a grid is refused."""
    return refusal(lambda: list(expand(values)))


def test_scalars_are_one_point() -> None:
    """A grid of scalars is the one point that it says."""
    assert list(expand(SAID)) == [point()]


def test_lists_are_a_product() -> None:
    """Lists are multiplied with each other, the first key varying slowest."""
    points = expand({"num_tokens": [10, 20], **{**SMALL, "num_tokens": [10, 20]}, "num_heads": [1, 2, 3]})

    assert [(point.num_tokens, point.num_heads) for point in points] == [
        (10, 1), (10, 2), (10, 3), (20, 1), (20, 2), (20, 3),
    ]  # fmt: skip


def test_defaults_are_the_suites() -> None:
    """Where a sweep says nothing, a point is the vit layer in float32 inference on the CPU, batch 8, one head."""
    (default,) = expand(SMALL)

    assert default == point(num_tokens=10, token_len=12, channels=12, num_heads=1)


@pytest.mark.parametrize(
    ("values", "token_lens"),
    [
        ({"channels": [12, 24]}, [12, 24]),
        ({"channels": [12, 24], "token_len": 49}, [49, 49]),
        ({"channels": 12, "token_len": [49, 12]}, [49, 12]),
    ],
)
def test_token_len_follows_channels(values: dict[str, Any], token_lens: list[int]) -> None:
    """A token is as long as there are channels, unless the grid says otherwise."""
    assert [point.token_len for point in expand(SMALL | values)] == token_lens


@pytest.mark.parametrize(
    ("values", "allocators"),
    [
        ({}, [HUGE]),
        ({"device": ["cpu", "cuda"]}, [HUGE, RETAINED]),
        ({"device": ["cpu", "cuda"], "allocator": "system"}, ["system", "system"]),
        ({"allocator": RETAINED}, [RETAINED]),
    ],
)
def test_the_machines_allocator_is_that_of_points_on_a_cpu(values: dict[str, Any], allocators: list[str]) -> None:
    """Huge pages of the host are nothing to a GPU, and an allocator that is asked for stays."""
    assert [point.allocator for point in expand({**SMALL, **values}, HUGE)] == allocators


@pytest.mark.parametrize(
    ("values", "timings"),
    [
        ({"device": ["cpu", "cuda", "cuda:3"]}, ["host", "device-cold", "device-cold"]),
        ({"device": "cuda", "timing": ["host", "device-hot"]}, ["host", "device-hot"]),
    ],
)
def test_timing_follows_the_device(values: dict[str, Any], timings: list[str]) -> None:
    """The CPU is timed by the wall, a GPU by events with a cold cache, unless the grid says otherwise."""
    assert [point.timing for point in expand(SMALL | values)] == timings


@pytest.mark.parametrize(
    ("key", "near"),
    [("num_head", "num_heads"), ("tokens", "num_tokens"), ("colour", ""), ("Batch", "batch"), ("", "")],
)
def test_an_unknown_key_is_refused(key: str, near: str) -> None:
    """A key that is no column of a point is refused with all that are, and the nearest of them."""
    suggested = f"; did you mean {near}?" if near else ""
    expected = f"unknown key {key!r}; expected one of {', '.join(POINT)}, model{suggested}"
    assert refused({**SMALL, key: 3}) == expected


@pytest.mark.parametrize("key", [key for key in SAID if COLUMNS[key].default is not DERIVED or key == "num_tokens"])
def test_a_missing_key_is_refused(key: str) -> None:
    """A point that lacks a value which follows from no other is refused, the key named."""
    assert refused({name: value for name, value in SAID.items() if name != key}).startswith(f"{key} is missing")


@pytest.mark.parametrize("key", list(POINT))
def test_an_empty_list_is_refused(key: str) -> None:
    """A list without a value would make an empty product, and is refused."""
    assert refused({**SAID, key: []}) == f"{key} = [] must hold at least one value"


@pytest.mark.parametrize("value", [0, -1, 1.0, 2.5, True, "8", None, [3]])
@pytest.mark.parametrize("key", [name for name, column in COLUMNS.items() if column.kind is Kind.COUNT])
def test_a_count_is_a_whole_number_of_at_least_one(key: str, value: object) -> None:
    """Nothing but a positive whole number is a count, and true is no number."""
    assert refused({**SAID, key: [value]}) == f"{key} = {value!r} must be a whole number of at least 1"


@pytest.mark.parametrize(
    ("key", "values", "expected"),
    [
        ("layer", ["vti"], f"must be one of {', '.join(LAYERS)}"),
        ("dtype", ["float64", 32], "must be one of float32, bfloat16, float16"),
        ("mode", ["backward", ["train"]], "must be one of inference, forward, train"),
        ("allocator", ["jemalloc", {}], "must be one of retained, system, retained-huge"),
        ("timing", ["cold"], "must be one of host, device-cold, device-hot"),
        ("qk_scale", ["0.5", True, float("nan")], "must be a number"),
        ("qkv_bias", [1, "true"], "must be true or false"),
        (
            "device",
            ["gpu", "cuda:", "cuda:one", "cuda:-1", "cuda:٣", "cpu:0", "", 0],
            "must be cpu, cuda or cuda:<number>",
        ),
    ],
)
def test_an_impossible_value_is_refused(key: str, values: list[object], expected: str) -> None:
    """A value that its column can't have is refused with the key, the value and what was expected."""
    for value in values:
        assert refused({**SAID, key: [value]}).startswith(f"{key} = {value!r} {expected}")


def test_all_mistakes_are_told_in_one_message() -> None:
    """Two wrong values and a missing key are three lines."""
    values = {**SMALL, "dtype": "fp32", "allocator": "foo"}
    del values["channels"]
    dtype, allocator, channels = refused(values).splitlines()
    assert dtype.endswith("did you mean float32?")
    assert allocator.startswith("allocator = 'foo' must be")
    assert channels.startswith("channels is missing")


def test_ranges_are_lists() -> None:
    """A range of whole numbers stands for its numbers, alone or beside others; a wrong one is named by its column."""
    points = expand({**SMALL, "num_tokens": ["128:512:128", 1000, "2:8:x2"], "batch": "1:2"})

    assert [(point.num_tokens, point.batch) for point in points] == [
        (tokens, batch) for batch in (1, 2) for tokens in (128, 256, 384, 512, 1000, 2, 4, 8)
    ]
    for key in ("num_tokens", "threads"):
        assert refused({**SMALL, key: "9:3"}).startswith(f"{key} = 9:3 is empty")


@pytest.mark.parametrize(("channels", "heads"), [([100], 3), ([64], 5), ([4], 8), ([48, 64], 6)])
def test_indivisible_channels_are_refused(channels: list[int], heads: int) -> None:
    """Channels that the heads can't share refuse a whole product, because its rows would be missing."""
    expected = f"channels = {channels[-1]} must be divisible by num_heads = {heads}"
    assert refused({**SAID, "channels": channels, "num_heads": [1, heads]}) == expected
