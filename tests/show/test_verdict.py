"""Who won at a point."""

import pytest

from bench.show.rows import Row
from bench.show.verdict import verdict

Interval = tuple[float | None, float | None, float | None]


def row(name: str, speedup: Interval, latency: Interval = (1.0, 0.9, 1.1), status: str = "ok") -> Row:
    """Return what a verdict looks at; triples are value, low, high."""
    ratios = dict(zip(("speedup", "speedup_low", "speedup_high"), speedup, strict=True))
    times = dict(zip(("latency_s", "latency_low_s", "latency_high_s"), latency, strict=True))
    return {"implementation": name, "status": status, **ratios, **times}


BASE = row("eager", (1.0, 1.0, 1.0))
NONE: Interval = (None, None, None)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([BASE, row("sdpa", (1.5, 1.4, 1.6))], "winner: sdpa"),
        ([BASE, row("sdpa", (0.8, 0.7, 0.9))], "winner: eager"),
        ([BASE, row("sdpa", (1.5, 1.4, 1.6)), row("mha", (1.45, 1.3, 1.5))], "tie: sdpa, mha"),
        ([BASE, row("sdpa", (1.5, 1.4, 1.6)), row("mha", (1.3, 1.2, 1.39))], "winner: sdpa"),
        ([BASE, row("sdpa", (1.01, 0.98, 1.04))], "tie: sdpa, eager"),
        ([BASE], "only one measured: eager"),
        ([BASE, row("sdpa", NONE, NONE, "oom")], "only one measured: eager"),
        ([row("sdpa", NONE, NONE, "oom")], "nothing was measured"),
        ([], "nothing was measured"),
    ],
)
def test_results_without_leads_are_decided_by_their_intervals(rows: list[Row], said: str) -> None:
    """The fastest wins only where no other's interval reaches its own; those that reach it tie."""
    assert str(verdict(rows)) == said


def test_one_process_shows_no_winner() -> None:
    """Without intervals the fastest is named, and that it is not more than that."""
    rows = [row("eager", (1.0, None, None)), row("sdpa", (1.5, None, None))]
    assert str(verdict(rows)) == "fastest, without intervals: sdpa"


def test_latencies_decide_where_the_baseline_failed() -> None:
    """Without ratios the intervals of the latencies are compared."""
    apart = [row("sdpa", NONE, (1.0, 0.9, 1.1)), row("mha", NONE, (2.0, 1.9, 2.1))]
    near = [row("sdpa", NONE, (1.0, 0.9, 1.1)), row("mha", NONE, (1.1, 1.0, 1.2))]
    assert str(verdict(apart)) == "winner: sdpa"
    assert str(verdict(near)) == "tie: sdpa, mha"


def led(name: str, speedup: float, lead: Interval) -> Row:
    """Return a row with a lead over it; the intervals of all speed-ups reach each other."""
    return row(name, (speedup, 0.5, 2.0)) | dict(zip(("lead", "lead_low", "lead_high"), lead, strict=True))


FIRST = led("sdpa", 1.5, (1.0, 1.0, 1.0))


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ([led("mha", 1.4, (1.07, 1.05, 1.09))], "winner: sdpa, 1.070x [1.050, 1.090] as fast as mha"),
        ([led("mha", 1.4, (1.004, 1.002, 1.006))], "winner: sdpa, 1.004x [1.002, 1.006] as fast as mha"),
        ([led("mha", 1.4, (1.07, 0.99, 1.15))], "tie: sdpa, mha"),
        ([led("mha", 1.4, (1.07, 1.05, 1.09)), led("eager", 1.0, (1.5, 0.9, 2.5))], "tie: sdpa, eager"),
        ([led("mha", 1.4, (1.07, None, None))], "fastest, without intervals: sdpa"),
    ],
)
def test_the_ratio_to_the_fastest_decides(others: list[Row], said: str) -> None:
    """Who was timed in the same rounds is told apart by the pairs, however wide the other intervals are."""
    assert str(verdict([*others, FIRST])) == said
