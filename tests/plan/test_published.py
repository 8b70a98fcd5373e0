"""Figures that others published."""

from functools import cache
from typing import Any

import pytest

from bench.plan.case import Point
from bench.plan.published import read
from bench.plan.sweep import Request, load_sweep, shipped_names
from bench.plan.verdicts import EQUIVALENT, FASTER, SLOWER
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
    ("figure", "columns", "latency_s"),
    [
        ({"latency_s": 0.25}, {}, 0.25),
        ({"items_per_s": 8}, {}, 0.25),  # 2 items a call
        ({"core_flops_per_s": 9408}, {}, 0.5),  # 4·2·7²·12 operations
        ({"core_flops_per_s": 9408}, {"mask": "causal"}, 0.25),  # half of them, as the authors of FlashAttention count
        ({"core_flops_per_s": 94080}, {"num_tokens": 1, "num_kv_tokens": 490}, 0.5),  # 4·2·490·12
        ({"core_flops_per_s": 9408}, {"mode": "forward"}, 0.5),
        ({"core_flops_per_s": 9408}, {"mode": "backward"}, 1.25),  # it computes the scores once more
        ({"core_flops_per_s": 9408}, {"mode": "train"}, 1.75),
    ],
)
def test_every_figure_is_seconds_a_call(figure: dict[str, float], columns: dict[str, Any], latency_s: float) -> None:
    """Items and operations a second become the seconds of a call of the point's shape, mask and mode.

    Operations count as in papers, also those of the keys of a context.
    """
    (published,) = read([WITHOUT_FIGURE | figure])
    at = point(**{"batch": 2, "num_tokens": 7, "channels": 12, **columns})
    assert published.latency_s(at) == pytest.approx(latency_s)


def test_lists_are_a_series_of_figures() -> None:
    """Lists go together, place by place; what is no list holds for each figure."""
    first, second = read([ENTRY | {"latency_s": [0.5, 2.0], "at": {"num_tokens": [7, 14], "device": "cuda"}}])
    assert (first,) == read([ENTRY])
    assert (second.value, second.called, second.at) == (2.0, "standard", {"num_tokens": 14, "device": "cuda"})


ON_H200 = {"card": "NVIDIA H200", "part": "core", "at": {"device": "cuda"}}
AT = {"layer": "core", "device": "cuda"}


@pytest.mark.parametrize(
    ("columns", "device_name", "latency_s", "verdict"),
    [
        (AT, "NVIDIA H200 140 GiB", 0.5, EQUIVALENT),
        (AT, "NVIDIA H200 140 GiB", 0.5 * 1.09, EQUIVALENT),
        (AT, "NVIDIA H200 140 GiB", 0.5 / 1.09, EQUIVALENT),
        (AT, "NVIDIA H200 140 GiB", 0.5 * 1.12, SLOWER),
        (AT, "NVIDIA H200 140 GiB", 0.5 / 1.12, FASTER),
        (AT, "NVIDIA H200 MIG 1g.18gb 16 GiB", 0.5, "another card, no comparison: published for NVIDIA H200, "),
        (AT, "", 0.5, "another card, no comparison: published for NVIDIA H200, measured on no GPU"),
        ({"layer": "vit", "device": "cuda"}, "NVIDIA H200 140 GiB", 0.5, "the core alone against a whole layer: no "),
    ],
)
def test_a_verdict_needs_the_same_card_and_the_same_work(
    columns: dict[str, str], device_name: str, latency_s: float, verdict: str
) -> None:
    """Then two times are equivalent if neither is more than 1.1 times the other; a figure without a card has none."""
    figure, unknown = read([ENTRY | ON_H200, ENTRY])
    assert figure.verdict(point(**columns), device_name, latency_s).startswith(verdict)
    assert unknown.verdict(point(**columns), device_name, latency_s) == ""


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({}, "published must be written as [[published]], one table for each figure or series"),
        ([ENTRY | {"url": "x"}], "unknown key of published 'url'; expected one of source, machine,"),
        ([ENTRY | {"source": 3}], "published: source = 3 must be text"),
        ([ENTRY | {"part": "half"}], "published: part = 'half' must be one of layer, core"),
        ([ENTRY | {"items_per_s": 3}], "published: exactly one of latency_s, items_per_s, core_flops_per_s must be"),
        ([ENTRY | {"latency_s": 0}], "published: exactly one of"),
        ([ENTRY | {"latency_s": "1 ms"}], "published: exactly one of"),
        ([ENTRY | {"card": 3}], "published: card = 3 must be text"),
        (
            [ENTRY | {"latency_s": [1, 2], "at": {"batch": [1, 2, 3]}}],
            "published: lists must have one length, got 2 and 3",
        ),
        ([ENTRY | {"at": {}}], "published: at must be a table of the columns that the figure was measured at"),
        ([ENTRY | {"at": {"tokens": 3}}], "unknown column of published 'tokens'; expected one of layer,"),
    ],
)
def test_what_is_no_figure_is_refused(entries: object, message: str) -> None:
    """A figure without a source, a unit or a point can't be compared with anything."""
    assert refusal(read, entries).startswith(message)


def test_shipped_figures_are_for_points_of_their_sweep() -> None:
    """Each figure is for a case of its own sweep, at some device and dtype."""

    @cache
    def points(name: str, *free: tuple[str, str]) -> tuple[Point, ...]:
        return load_sweep(Request(name, overrides={"timing": "host", **dict(free)})).points

    for name in shipped_names():
        sweep = load_sweep(name)
        for figure in sweep.published:
            free = [(key, figure.at[key]) for key in ("device", "dtype", "timing") if key in figure.at]
            assert any(figure.is_for(point) for point in points(name, *free)), figure
            assert figure.implementation in sweep.implementations
