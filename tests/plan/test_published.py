"""Figures that others published."""

from typing import Any

import pytest

from bench.plan.published import read
from bench.plan.sweep import Request, load_sweep, shipped_names
from tests.points import point
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
    """Every column that is said must agree, the others may be anything, and any GPU is cuda."""
    (figure,) = read([ENTRY])

    assert figure.is_for(point(device="cuda"))
    assert figure.is_for(point(device="cuda:1", batch=3))
    assert not figure.is_for(point(device="cpu"))
    assert not figure.is_for(point(device="cuda", num_tokens=8))


def test_a_figure_without_a_mask_is_not_for_masked_points() -> None:
    """What was published without a word of a mask was measured without one; a figure may say that it had one."""
    (plain,) = read([ENTRY])
    (masked,) = read([ENTRY | {"at": {"device": "cuda", "mask": "causal"}}])
    causal = point(device="cuda", mask="causal")

    assert (plain.is_for(causal), masked.is_for(causal), masked.is_for(point(device="cuda"))) == (False, True, False)


def test_a_causal_core_has_half_of_the_operations() -> None:
    """Operations a second count those that a mask leaves, as the authors of FlashAttention count them."""
    (figure,) = read([WITHOUT_FIGURE | {"core_flops_per_s": 9408}])

    assert figure.latency_s(point(num_tokens=7, channels=12, mask="causal")) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("figure", "latency_s"),
    [
        ({"latency_s": 0.25}, 0.25),
        ({"items_per_s": 8}, 0.25),  # 2 items a call
        ({"core_flops_per_s": 9408}, 0.5),  # 4·2·7²·12 operations
    ],
)
def test_every_figure_is_seconds_a_call(figure: dict[str, float], latency_s: float) -> None:
    """Items and operations a second become the seconds of a call of the point's shape."""
    (published,) = read([WITHOUT_FIGURE | figure])

    assert published.latency_s(point(batch=2, num_tokens=7, channels=12)) == pytest.approx(latency_s)


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({}, "published must be written as [[published]], one table for each figure"),
        ([3], "published must be written as [[published]], one table for each figure"),
        ([ENTRY | {"url": "x"}], "unknown key of published 'url'; expected one of source, machine,"),
        ([ENTRY | {"source": 3}], "published: source = 3 must be text"),
        ([ENTRY | {"part": "half"}], "published: part = 'half' must be one of layer, core"),
        ([ENTRY | {"items_per_s": 3}], "published: exactly one of latency_s, items_per_s, core_flops_per_s must be"),
        ([ENTRY | {"latency_s": 0}], "published: exactly one of latency_s, items_per_s, core_flops_per_s must be"),
        ([ENTRY | {"latency_s": "1 ms"}], "published: exactly one of"),
        ([ENTRY | {"at": {}}], "published: at must be a table of the columns that the figure was measured at"),
        ([ENTRY | {"at": {"tokens": 3}}], "unknown column of published 'tokens'; expected one of layer,"),
    ],
)
def test_what_is_no_figure_is_refused(entries: object, said: str) -> None:
    """A figure without a source, a unit or a point can't be set beside anything."""
    assert refusal(read, entries).startswith(said)


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_figures_are_for_points_of_their_sweep(name: str) -> None:
    """Each figure stands beside a case of its own sweep, for some device and dtype, and names its source."""
    sweep = load_sweep(name)

    for figure in sweep.published:
        free = {key: figure.at[key] for key in ("device", "dtype") if key in figure.at}
        overridden = load_sweep(Request(name, overrides={**free, "timing": "host"})).points
        assert any(figure.is_for(each) for each in overridden), figure
        assert figure.implementation in sweep.implementations


@pytest.mark.parametrize(
    ("name", "implementation", "latency_ms"),
    [
        ("hubhop-layer", "eager", {64 / 505 * 1e3, 64 / 4403 * 1e3}),
        ("pytorch-cpu-sdpa", "sdpa_math", {3.081, 1.203}),
        ("pytorch-cpu-sdpa", "sdpa_flash", {1.665, 1.154}),
    ],
)
def test_the_figures_of_the_sources(name: str, implementation: str, latency_ms: set[float]) -> None:
    """The sources' figures, images a second or milliseconds a call, are these."""
    sweep = load_sweep(name)
    figures = [figure for figure in sweep.published if figure.implementation == implementation]

    published_ms = {figure.latency_s(sweep.points[0]) * 1e3 for figure in figures}
    assert sorted(published_ms) == pytest.approx(sorted(latency_ms))
