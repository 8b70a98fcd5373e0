"""Figures that others published."""

from typing import Any

import pytest

from bench.plan.published import read
from bench.plan.sweep import Request, load_sweep, shipped_names
from tests.make.points import point
from tests.refusals import refusal

ENTRY: dict[str, Any] = {
    "source": "A paper, table 3",
    "machine": "a CPU",
    "called": "standard",
    "implementation": "eager",
    "part": "layer",
    "latency_s": 0.5,
    "at": {"num_tokens": 7, "device": "cuda"},
}

WITHOUT_FIGURE = {name: value for name, value in ENTRY.items() if name != "latency_s"}


def test_a_figure_is_for_the_points_that_have_its_columns() -> None:
    """Every column of `at` must agree, the others may be anything, and any GPU is cuda; a mask not given is none."""
    (plain,) = read([ENTRY])
    (masked,) = read([ENTRY | {"at": {"device": "cuda", "mask": "causal"}}])
    points = [
        point(device="cuda"),
        point(device="cuda:1", batch=3),
        point(device="cuda", mask="causal"),
        point(device="cuda", num_tokens=8),
        point(device="cpu"),
    ]
    assert [plain.is_for(each) for each in points] == [True, True, False, False, False]
    assert [masked.is_for(each) for each in points] == [False, False, True, False, False]
    other = [
        point(device="cuda", **each) for each in ({"num_kv_tokens": 5}, {"num_kv_heads": 1}, {"attn_bias": "alibi"})
    ]
    assert not any(plain.is_for(each) for each in other)
    (crossed,) = read([ENTRY | {"at": {"device": "cuda", "num_kv_tokens": 5}}])
    assert [crossed.is_for(each) for each in other] == [True, False, False]


@pytest.mark.parametrize(
    ("figure", "mask", "latency_s"),
    [
        ({"latency_s": 0.25}, "none", 0.25),
        ({"items_per_s": 8}, "none", 0.25),  # 2 items a call
        ({"core_flops_per_s": 9408}, "none", 0.5),  # 4·2·7²·12 operations
        ({"core_flops_per_s": 9408}, "causal", 0.25),  # half of them, as the authors of FlashAttention count
    ],
)
def test_every_figure_is_seconds_a_call(figure: dict[str, float], mask: str, latency_s: float) -> None:
    """Items and operations a second become the seconds of a call of the point's shape and mask."""
    (published,) = read([WITHOUT_FIGURE | figure])
    assert published.latency_s(point(batch=2, num_tokens=7, channels=12, mask=mask)) == pytest.approx(latency_s)


def test_operations_count_the_keys_of_a_context() -> None:
    """One query against 490 keys of width 12 in 2 items has 4·2·490·12 operations."""
    (published,) = read([WITHOUT_FIGURE | {"core_flops_per_s": 94080}])
    assert published.latency_s(point(batch=2, num_tokens=1, num_kv_tokens=490, channels=12)) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({}, "published must be written as [[published]], one table for each figure"),
        ([ENTRY | {"url": "x"}], "unknown key of published 'url'; expected one of source, machine,"),
        ([ENTRY | {"source": 3}], "published: source = 3 must be text"),
        ([ENTRY | {"part": "half"}], "published: part = 'half' must be one of layer, core"),
        ([ENTRY | {"items_per_s": 3}], "published: exactly one of latency_s, items_per_s, core_flops_per_s must be"),
        ([ENTRY | {"latency_s": 0}], "published: exactly one of"),
        ([ENTRY | {"latency_s": "1 ms"}], "published: exactly one of"),
        ([ENTRY | {"at": {}}], "published: at must be a table of the columns that the figure was measured at"),
        ([ENTRY | {"at": {"tokens": 3}}], "unknown column of published 'tokens'; expected one of layer,"),
    ],
)
def test_what_is_no_figure_is_refused(entries: object, message: str) -> None:
    """A figure without a source, a unit or a point can't be compared with anything."""
    assert refusal(read, entries).startswith(message)


def test_shipped_figures_are_for_points_of_their_sweep() -> None:
    """Each figure is for a case of its own sweep, at some device and dtype."""
    for name in shipped_names():
        sweep = load_sweep(name)
        for figure in sweep.published:
            free = {key: figure.at[key] for key in ("device", "dtype") if key in figure.at}
            points = load_sweep(Request(name, overrides={**free, "timing": "host"})).points
            assert any(figure.is_for(each) for each in points), figure
            assert figure.implementation in sweep.implementations
